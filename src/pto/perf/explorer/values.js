// -- values of operands, as they were when an instruction was executed --------------------------------------------
for (const run of runs) if (run.values) run.val = await columns(run.values.columns);
const chunks = new Map();
const chunkOf = n => chunks.get(n) ?? chunks.set(n, inflated($("values-" + n).textContent)).get(n);
const half = bits => {
  const sign = bits & 0x8000 ? -1 : 1, exponent = bits >> 10 & 31, rest = bits & 1023;
  return sign * (exponent === 31 ? (rest ? NaN : Infinity) : exponent ? 2 ** (exponent - 15) * (1 + rest / 1024) : 2 ** -24 * rest);
};
const word = new DataView(new ArrayBuffer(4));
const brain = bits => (word.setUint32(0, bits << 16), word.getFloat32(0));
// Element types: bytes, and how one is read.
const READ = {f32: [4, (v, o) => v.getFloat32(o, true)], f16: [2, (v, o) => half(v.getUint16(o, true))], bf16: [2, (v, o) => brain(v.getUint16(o, true))],
  i8: [1, (v, o) => v.getInt8(o)], u8: [1, (v, o) => v.getUint8(o)], i16: [2, (v, o) => v.getInt16(o, true)], u16: [2, (v, o) => v.getUint16(o, true)],
  i32: [4, (v, o) => v.getInt32(o, true)], u32: [4, (v, o) => v.getUint32(o, true)], i64: [8, (v, o) => Number(v.getBigInt64(o, true))], u64: [8, (v, o) => Number(v.getBigUint64(o, true))]};
async function elementsOf(run, snap) {
  const [dtype, rows, cols, , chunk, offset] = run.values.snapshots[snap], [size, read] = READ[dtype] ?? READ.f32;
  const view = new DataView(await chunkOf(chunk), offset, rows * cols * size), out = new Float64Array(rows * cols);
  for (let i = 0; i < out.length; i++) out[i] = read(view, i * size);
  return out;
}
const number = v => Number.isInteger(v) ? String(v) : Number.isNaN(v) ? "NaN" : Math.abs(v) === Infinity ? (v > 0 ? "inf" : "-inf") : Math.abs(v) >= 1e5 || Math.abs(v) < 1e-3 ? v.toExponential(3) : String(+v.toPrecision(5));

// A matrix as colours: below zero one hue, above it another; what is no number stands out.
function heat(canvas, values, rows, cols, low, high) {
  const w = Math.min(cols, Math.max(1, Math.floor(canvas.clientWidth))), h = Math.min(rows, Math.max(1, Math.floor(canvas.clientHeight)));
  canvas.width = w, canvas.height = h;
  const c = canvas.getContext("2d"), image = c.createImageData(w, h), sum = new Float64Array(w * h), count = new Int32Array(w * h), odd = new Uint8Array(w * h);
  for (let r = 0; r < rows; r++) for (let k = 0; k < cols; k++) {
    const at = Math.floor(r * h / rows) * w + Math.floor(k * w / cols), v = values[r * cols + k];
    if (Number.isFinite(v)) sum[at] += v, count[at]++; else odd[at] = 1;
  }
  const [paper, cold, warm, bad] = ["--plot", "--accent", "--warm", "--bad"].map(n => colour(n).match(/[\d.]+/g).map(Number)), most = Math.max(Math.abs(low), Math.abs(high)) || 1;
  for (let i = 0; i < w * h; i++) {
    const v = count[i] ? sum[i] / count[i] : 0, part = Math.min(1, Math.abs(v) / most) ** 0.7, ink = odd[i] ? bad : v < 0 ? cold : warm, strong = odd[i] ? 1 : part;
    for (let k = 0; k < 3; k++) image.data[4 * i + k] = paper[k] + (ink[k] - paper[k]) * strong;
    image.data[4 * i + 3] = 255;
  }
  c.putImageData(image, 0, 0);
}

// What is known of the operands of an event: [name, label, role, snapshot or text].
const operandsOf = (run, e) => {
  if (!run.val) return [];
  const {event, name, role, of} = run.val, out = [];
  for (let i = bisect(event, e - 1, 0, event.length); i < event.length && event[i] === e; i++) {
    const [operand, label] = run.values.names[name[i]];
    out.push({operand, label: label ?? operand, role: role[i], snap: of[i], text: of[i] < 0 ? run.values.scalars[-1 - of[i]] : ""});
  }
  return out;
};
const kept = run => `${run.values.whole} of ${run.values.snapshots.length} matrices are kept whole (${amount(run.values.spent)}B of ${amount(run.values.budget)}B, equal ones once)` +
  (run.values.dropped ? `; of ${run.values.dropped} operands nothing` : "") + (run.values.whole < run.values.snapshots.length || run.values.dropped ? "; --values SIZE keeps more" : "");

let shownOperand = "";  // stays open from one execution to the next
function valuesInto(holder, run, e) {
  if (!run.values) {
    if (VIEW !== "tasks" && UNIT === "us") fill(holder, html`<p class="soft">${run.dry ? "A dry run has no values." : html`Values were not recorded: <code>--view</code> does.`}</p>`);
    return;
  }
  const operands = operandsOf(run, e);
  if (!operands.length) { fill(holder, html`<p class="soft">No values: it has no operands in memory, or the run kept no more. ${kept(run)}.</p>`); return; }
  const open = Math.max(0, operands.findIndex(o => o.operand + o.role === shownOperand));
  fill(holder, html`<div class="operands" role="tablist">${operands.map((o, n) => html`<button role="tab" data-n="${n}" aria-selected="${n === open}" title="${o.operand}, ${o.role ? "after" : "before"}"><span class="soft">${o.role ? "out" : "in"}</span> ${o.label.startsWith("%") ? named(run, o.label) : o.label}${o.text ? ` = ${o.text}` : ""}</button>`)}</div><div class="value"></div>`);
  for (const b of holder.querySelectorAll("button")) b.onclick = () => {
    for (const o of holder.querySelectorAll("button")) o.setAttribute("aria-selected", o === b);
    const o = operands[+b.dataset.n];
    shownOperand = o.operand + o.role, valueInto(holder.querySelector(".value"), run, o);
  };
  valueInto(holder.querySelector(".value"), run, operands[open]);
}
async function valueInto(holder, run, o) {
  if (o.snap < 0) { fill(holder, html`<p>${o.operand} = <b>${o.text}</b></p>`); return; }
  const [dtype, rows, cols, kind, chunk, , [low, high, mean, nan, inf, zeros], first, last] = run.values.snapshots[o.snap], count = rows * cols;
  const odd = (n, what) => n ? html`<b class="bad">${n} ${what}</b>` : `no ${what}`;
  const place = kind.split(","), [title, ...more] = [run.titles?.[place[0]] ?? place[0], ...place.slice(1)];
  const head = html`<p><b>${named(run, o.label)}</b> ${rows}x${cols}x${dtype} <span class="soft">${[title, ...more].join(",")}, ${o.role ? "when it was through" : "when it began"}</span></p>
    <p>${low === "" ? "nothing finite" : `${low} to ${high}, mean ${mean}`}; ${odd(nan, "NaN")}, ${odd(inf, "inf")}, ${zeros} of ${count} zero</p>`;
  fill(holder, chunk < 0 ? html`${head}<p>first ${first}<br/>last ${last}</p><p class="soft">Its elements were not kept: ${kept(run)}.</p>` : head);
  if (chunk < 0 || !count) return;
  const wide = holder.clientWidth, shape = Math.max(18, Math.min(130, wide * rows / cols)), width = Math.max(24, Math.min(wide, shape * cols / rows));
  fill(holder, html`${head}<div class="shown"><canvas class="heat" style="width:${width}px;height:${shape}px" aria-label="${o.label} as colours"></canvas><div class="cells"></div></div><p class="soft kept">${kept(run)}.</p>`);
  const values = await elementsOf(run, o.snap), canvas = holder.querySelector(".heat"), cells = holder.querySelector(".cells");
  if (!canvas) return;  // another one was picked meanwhile
  heat(canvas, values, rows, cols, +low || 0, +high || 0);
  const beside = wide - width - 14, columnsShown = Math.min(cols, Math.max(2, Math.floor(((beside > 180 ? beside : wide) - 34) / 66)));
  const table = (r, k) => {
    r = Math.max(0, Math.min(rows - Math.min(rows, 6), r)), k = Math.max(0, Math.min(cols - columnsShown, k));
    const across = cell => Array.from({length: columnsShown}, (_, n) => cell(k + n)), down = Array.from({length: Math.min(rows, 6)}, (_, n) => r + n);
    fill(cells, html`<table><tr><th></th>${across(c => html`<th class="r">${c}</th>`)}</tr>${
      down.map(i => html`<tr><th class="r">${i}</th>${across(c => { const v = values[i * cols + c]; return html`<td class="r${Number.isFinite(v) ? "" : " bad"}">${number(v)}</td>`; })}</tr>`)}</table>`);
  };
  const strange = nan || inf ? values.findIndex(v => !Number.isFinite(v)) : 0;  // what is no number first
  table(Math.floor(strange / cols) - (strange ? 2 : 0), strange % cols - (strange ? 2 : 0));
  canvas.onpointermove = canvas.onpointerdown = ev => {
    const box = canvas.getBoundingClientRect();
    table(Math.floor((ev.clientY - box.top) / box.height * rows) - 2, Math.floor((ev.clientX - box.left) / box.width * cols) - Math.floor(columnsShown / 2));
  };
}
