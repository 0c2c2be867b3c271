"""A live map from the broker alone: where published devices are, drawn again every few seconds.

    python live_map.py mqtt://127.0.0.1:1883 map.png

It needs no file and no account of the gateway: the network is retained on the broker. Ctrl-C ends
it. Extras: client, plots.
"""

import argparse
import time
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from anonymizer import client


def draw(releases: client.Releases, path: Path, *, cell_m: float) -> None:
    """Draw the expected devices in cells over the roads, and replace the picture."""
    network = releases.network
    heat = releases.heat_map(network.grid(cell_m))
    roads = client.Table({"u": network.u}, network.roads()).to_geopandas()
    figure, axes = plt.subplots(figsize=(9, 8))
    heat.to_geopandas().plot(
        "devices", ax=axes, cmap="YlOrRd", legend=True, legend_kwds={"label": "expected devices"}
    )
    roads.plot(ax=axes, color="0.4", linewidth=0.4)
    axes.set_axis_off()
    moment = time.strftime("%H:%M:%S", time.gmtime(releases.now))
    axes.set_title(f"{releases.devices()} devices at {moment} UTC")
    part = path.with_name(f".{path.name}")
    figure.savefig(part, format=path.suffix[1:], bbox_inches="tight")
    plt.close(figure)
    part.replace(path)  # a viewer never reads half a picture


def main() -> None:
    """Draw until interrupted, or as many pictures as are wanted."""
    parser = argparse.ArgumentParser(description="A live map from the broker alone.")
    parser.add_argument("url", help="mqtt://host:port")
    parser.add_argument("picture", type=Path, help="*.png, *.svg or *.pdf")
    parser.add_argument("--every", type=float, default=5.0, help="seconds between two pictures")
    parser.add_argument("--cell", type=float, default=250.0, help="width of a cell in metres")
    parser.add_argument("--pictures", type=int, default=0, help="how many; 0: no end")
    options = parser.parse_args()
    drawn = 0
    with client.subscribe(options.url) as stream:
        stream.wait()
        while True:
            draw(stream.releases(), options.picture, cell_m=options.cell)
            drawn += 1
            if drawn == options.pictures:
                return
            time.sleep(options.every)


if __name__ == "__main__":
    main()
