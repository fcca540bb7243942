// Line charts in the colours of the theme. uPlot is loaded when the first chart is drawn.

const HEIGHT = 150;
const WHOLE = [1, 2, 5].flatMap((step) => [1, 10, 100, 1e3, 1e4, 1e5, 1e6].map((unit) => step * unit));
WHOLE.sort((a, b) => a - b); // distances of ticks
const loaded = () => import("./uPlot.esm.js");

/**
 * A chart in `box`. `columns` are x and the lines' values; `lines` are `{ colour, low, high }`,
 * where a colour is the name of a variable of the stylesheet, and low and high are the columns of
 * a band (drawn as lines without ink).
 */
export class Chart {
  constructor(box, { lines, bands = [], percent = false }) {
    Object.assign(this, { box, lines, bands, percent });
    this.plot = null;
    this.columns = null;
    document.addEventListener("themechange", () => this.redraw());
    new ResizeObserver(() => this.resize()).observe(box);
  }

  async draw(columns) {
    this.columns = columns;
    const { default: uPlot } = await loaded();
    if (columns !== this.columns) return; // newer ones came meanwhile
    if (this.plot) this.plot.setData(columns);
    else this.plot = new uPlot(this.options(), columns, this.box);
  }

  redraw() {
    if (!this.plot) return;
    this.plot.destroy();
    this.plot = null;
    this.draw(this.columns);
  }

  resize() {
    const width = this.box.clientWidth;
    if (this.plot && width && width !== this.plot.width) {
      this.plot.setSize({ width, height: HEIGHT });
    }
  }

  options() {
    const ink = colour("--muted");
    const grid = { stroke: colour("--line"), width: 1 };
    const axis = { stroke: ink, grid, ticks: { show: false }, font: "12px system-ui", gap: 4 };
    const values = this.percent ? (_, ticks) => ticks.map((v) => `${round(100 * v)} %`) : undefined;
    return {
      width: this.box.clientWidth || 280,
      height: HEIGHT,
      padding: [8, 10, 0, 0],
      legend: { show: false },
      cursor: { show: false },
      scales: { x: { time: false }, y: { range: this.percent ? share : count } },
      axes: [
        { ...axis, size: 22, space: 60, incrs: WHOLE },
        { ...axis, size: 44, space: 32, values, incrs: this.percent ? undefined : WHOLE },
      ],
      series: [{}, ...this.lines.map((line) => this.series(line))],
      bands: this.bands.map(({ series, fill }) => ({ series, fill: colour(fill) })),
    };
  }

  series({ colour: name, dash }) {
    const points = { show: false };
    if (!name) return { stroke: "transparent", width: 0, points, spanGaps: true };
    return { stroke: colour(name), width: 2, dash, points, spanGaps: true };
  }
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function round(value) {
  return Math.round(10 * value) / 10;
}

/** Shares: the top is 100 % where the lines come near it. */
function share(_, low, high) {
  if (low === null) return [0, 1];
  const room = Math.max(0.02, 0.15 * (high - low));
  return [Math.max(0, low - room), Math.min(1, high + room)];
}

function count(_, low, high) {
  return [0, high === null ? 1 : Math.max(4, 1.1 * high)];
}
