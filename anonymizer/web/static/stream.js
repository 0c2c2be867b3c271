// Requests to the gateway: with the token, if it asks for one, and again when the line breaks.

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 5_000;

export class Refused extends Error {}

function headers() {
  const token = sessionStorage.getItem("token");
  return token ? { Authorization: `Bearer ${token}` } : {};
}

async function get(path, options = {}) {
  const answer = await fetch(path, { headers: headers(), ...options });
  if (answer.status === 401) throw new Refused();
  if (!answer.ok) throw new Error(`${answer.status}`);
  return answer;
}

export async function getJson(path) {
  return (await get(path)).json();
}

export async function getInts(path) {
  return new Int32Array(await (await get(path)).arrayBuffer());
}

/** Yield [kind, data] of server-sent events until the stream ends. */
export async function* readEvents(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const fields = Object.fromEntries(event.split("\n").map((line) => {
        const colon = line.indexOf(": ");
        return [line.slice(0, colon), line.slice(colon + 2)];
      }));
      yield [fields.event, JSON.parse(fields.data)];
    }
  }
}

/** Follow a stream until `signal` aborts; begin again, ever more patiently, when it breaks. */
export async function follow(path, { signal, onEvent, onState }) {
  let wait = FIRST_WAIT_MS;
  while (!signal.aborted) {
    try {
      const answer = await get(path, { signal, cache: "no-store" });
      for await (const [kind, data] of readEvents(answer.body)) {
        if (signal.aborted) return;
        wait = FIRST_WAIT_MS;
        onState("live");
        onEvent(kind, data);
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Refused) throw error;
    }
    if (signal.aborted) return;
    onState("lost");
    await new Promise((resolve) => setTimeout(resolve, wait));
    wait = Math.min(2 * wait, LONGEST_WAIT_MS);
  }
}
