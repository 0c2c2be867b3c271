// Who runs the gateway, and how to take no part: in the operator's words, or what holds in general.

/** An https address without the punctuation after it, or a mail address. */
const LINK = /https:\/\/[^\s<>"]*[^\s<>"'.,;:!?)\]]|[\w.+-]+@[\w-]+(?:\.[\w-]+)+/g;

/** Return text as nodes: nothing in it is markup, addresses become links. */
function linked(text) {
  const nodes = [];
  let end = 0;
  for (const { 0: address, index } of text.matchAll(LINK)) {
    const href = address.startsWith("https://") ? address : `mailto:${address}`;
    nodes.push(text.slice(end, index), Object.assign(document.createElement("a"), { href, rel: "noreferrer", textContent: address }));
    end = index + address.length;
  }
  return [...nodes, text.slice(end)];
}

function whoRunsIt({ run_by: stated, demo }) {
  if (stated) return `Run by: ${stated}`;
  return demo ? "A demo, on the computer of whoever started it." : "Whoever runs this gateway has not said who they are, or how to reach them.";
}

function howToTakeNoPart({ opt_out: stated, demo, devices_may: may }) {
  if (stated) return `To take no part: ${stated}`;
  if (demo) return "Its devices are simulated: nobody takes part.";
  return may
    ? "To take no part: a device can tell this gateway to leave it out, and nothing more is published about it. Ask who made your device or its app how, or who runs this gateway."
    : "To take no part: let your device or its app send no positions here, or ask who runs this gateway. It is not set up to hear such a wish from devices themselves.";
}

/** Show it, also to those who have no token. */
export function showNotice(notice) {
  for (const place of document.querySelectorAll("[data-who]")) place.replaceChildren(...linked(whoRunsIt(notice)));
  document.getElementById("opt-out").replaceChildren(...linked(howToTakeNoPart(notice)));
}
