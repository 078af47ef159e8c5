// --- charts -------------------------------------------------------------------------------------------------------

const MOST_SQUARE = 440;
const drawn = new Map();
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Colours of the theme; as many columns of a legend as its longest name leaves room for. */
function chartConfig(width, spec) {
  const names = encodingsOf(spec).flatMap((encoding) => encoding.color?.legend?.values || []);
  const longest = Math.min(220, 40 + 7 * Math.max(6, ...names.map((name) => name.length)));
  const ink = colour("--ink"), muted = colour("--muted"), grid = colour("--grid");
  const words = { labelColor: ink, titleColor: muted, labelFontSize: 12, titleFontSize: 12, titleFontWeight: 400 };
  return {
    background: null, font: 'system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif', view: { stroke: grid },
    axis: { ...words, gridColor: grid, domainColor: grid, tickColor: grid, labelLimit: width < 500 ? 110 : 150 },
    legend: { ...words, labelLimit: 200, columns: Math.max(1, Math.floor((width - 70) / longest)), columnPadding: 14 },
    header: { labelColor: ink, labelFontSize: 13, labelFontWeight: 600, labelAnchor: "start", labelLimit: 300 },
  };
}

// Every object of JavaScript has a `constructor` and more; Vega takes a value of such a name for one it knows.
const chartName = (value) => (typeof value === "string" && value in Object.prototype ? `\u2060${value}` : value);
const safeRow = (row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, chartName(value)]));

function encodingsOf(part) {
  if (Array.isArray(part)) return part.flatMap(encodingsOf);
  if (part == null) return [];
  return [...(part.encoding ? [part.encoding] : []), ...encodingsOf(part.layer), ...encodingsOf(part.spec)];
}

/** Put rows into a chart; legends name what is in them, and nothing where that is a single thing. */
function withRows(spec, tables) {
  spec.datasets = Object.fromEntries(Object.entries(tables).map(([name, list]) => [name, list.map(safeRow)]));
  const all = Object.values(spec.datasets).flat();
  const channels = encodingsOf(spec).flatMap((encoding) => [encoding.color, encoding.shape]).filter((one) => one?.legend);
  for (const channel of channels.filter((one) => one.type === "nominal")) {
    const there = new Set(all.map((row) => row[channel.field]));
    const values = channel.scale.domain.filter((name) => there.has(name));
    channel.legend = values.length > 1 ? { ...channel.legend, values } : null;
  }
  return spec;
}

// What stands beside the panels of a chart (names, axes, space between), in pixels; known once it was drawn.
const beside = new Map();

/** Fit a chart to the width it has: panels go below each other where there is little. */
function fitted(spec, width, place) {
  const wanted = spec.usermeta?.columns || 1, inner = spec.spec || spec;
  const square = !spec.facet && wanted === 2;
  const there = spec.facet ? new Set(Object.values(spec.datasets).flat().map((row) => row[spec.facet.field])).size : 1;
  const columns = Math.max(1, Math.min(wanted, there, Math.floor(width / 260)));
  if (spec.facet) spec.columns = columns;
  const each = Math.floor((width - (beside.get(place) ?? 70 + 40 * columns)) / (spec.facet ? columns : 1));
  inner.width = Math.max(square ? 150 : 80, square ? Math.min(MOST_SQUARE, each) : each);
  if (square) inner.height = inner.width;
  return spec;
}

/** Remember what stands beside the panels; tell whether the chart should be drawn again, now that it is known. */
function isOff(spec, box, place) {
  const drawnWidth = Number(box.querySelector("svg.marks")?.getAttribute("width")), inner = spec.spec || spec;
  const square = !spec.facet && spec.usermeta?.columns === 2;
  beside.set(place, Math.ceil(drawnWidth - inner.width * (spec.columns || 1)));
  const over = drawnWidth - box.clientWidth;
  return over > 0 || (over < -8 && (!square || inner.width < MOST_SQUARE));
}

async function draw(name, tables, place = name, change = () => {}) {
  drawn.set(place, [name, tables, change]);
  const box = $(`chart-${place}`), width = box.clientWidth || 640;
  const actions = { export: true, source: false, compiled: false, editor: false };
  // ast: expressions are interpreted, not compiled, so the page needs no eval.
  const how = { ast: true, renderer: "svg", actions, downloadFileName: name };
  const once = async () => {
    const spec = fitted(withRows(structuredClone(D.charts[name]), tables), width, place);
    change(spec);
    const { view } = await window.vegaEmbed(box, spec, { ...how, config: chartConfig(width, spec) });
    return { view, spec };
  };
  const first = await once();
  // Something newer is being drawn there, or the width is right.
  if (drawn.get(place)?.[1] !== tables || !isOff(first.spec, box, place)) return first.view;
  return (await once()).view;
}

/** Say in words what would be a chart of one dot. */
function say(place, text) {
  drawn.delete(place);
  $(`chart-${place}`).replaceChildren(make("p", { class: "instead" }, text));
}

function redraw() {
  for (const [place, [name, tables, change]] of drawn) if (place !== "annotators") draw(name, tables, place, change);
  drawPeople();
}
