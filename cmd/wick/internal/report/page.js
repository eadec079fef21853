"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);

  // make builds an element; text only ever becomes text.
  function make(tag, props = {}, ...children) {
    const e = document.createElement(tag);
    for (const [k, v] of Object.entries(props)) {
      if (k === "text") e.textContent = v;
      else if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
      else e.setAttribute(k, v);
    }
    e.append(...children);
    return e;
  }

  function svg(tag, props) {
    const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [k, v] of Object.entries(props)) e.setAttribute(k, v);
    return e;
  }

  function size(n) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let i = 0;
    while (n >= 1023.95 && i < units.length - 1) { n /= 1024; i++; }
    return (i === 0 || n >= 99.95 ? n.toFixed(0) : n.toFixed(1)) + " " + units[i];
  }

  const number = (x) => x === undefined ? "–" : String(Number(x.toPrecision(4)));
  const plural = (n, noun) => n.toLocaleString("en") + " " + noun + (n === 1 ? "" : "s");

  // The tree of modules: the dots in names are steps. What is deeper than 40
  // steps keeps the rest of its name as one.
  const root = { name: "", kids: new Map(), bytes: 0, count: 0, parent: null };
  data.rows.forEach((row, at) => {
    let steps = row.n.split(".");
    if (steps.length > 40) steps = [...steps.slice(0, 39), steps.slice(39).join(".")];
    let node = root;
    for (const step of steps) {
      node.bytes += row.b;
      node.count++;
      let kid = node.kids.get(step);
      if (!kid) node.kids.set(step, kid = { name: step, kids: new Map(), bytes: 0, count: 0, parent: node });
      node = kid;
    }
    node.bytes += row.b;
    node.count++;
    (node.rows ??= []).push(at);
  });

  // group puts the members of very long lists into ranges, which a map has room
  // for and a reader can open one after the other.
  function group(node) {
    for (const kid of node.kids.values()) group(kid);
    const kids = [...node.kids.values()], most = 400;
    if (kids.length <= most) return;
    node.kids = new Map();
    const length = Math.max(100, Math.ceil(kids.length / most));
    for (let i = 0; i < kids.length; i += length) {
      const part = kids.slice(i, i + length), name = `${part[0].name} … ${part.at(-1).name}`;
      const range = { name, kids: new Map(), bytes: 0, count: 0, parent: node, range: true };
      for (const kid of part) {
        range.kids.set(kid.name, kid);
        range.bytes += kid.bytes;
        range.count += kid.count;
        kid.parent = range;
      }
      node.kids.set(name, range);
    }
  }

  group(root);

  const isTensor = (node) => node.rows !== undefined && node.kids.size === 0;

  // path is a node's name from the root.
  function path(node) {
    const steps = [];
    if (node.range) steps.push(node.name);
    for (; node.parent; node = node.parent) if (!node.range) steps.unshift(node.name);
    return steps.join(".");
  }

  // Facts, warnings, values, objects, findings.
  for (const f of data.facts) $("facts").append(make("dt", { text: f.k }), make("dd", { text: f.v }));

  const show = (id, list) => { $(id).hidden = list.length === 0; };
  show("warnings-box", data.warnings.concat(data.findings));
  if (data.alert) {
    const names = [...new Set(data.findings.map((f) => f.n))];
    const link = make("a", { href: "#scan-box" }, make("b", { text: data.alert }), "  " + names.slice(0, 5).join(", ") + (names.length > 5 ? ", …" : ""));
    $("warnings").append(make("li", {}, link, ": a plain torch.load would import or run this"));
  }
  for (const w of data.warnings.slice(0, 200)) {
    const button = make("button", { type: "button", onclick: () => detail(w.r) }, make("b", { text: w.t }), "  " + (data.rows[w.r].n || "(root)"));
    $("warnings").append(make("li", {}, button));
  }
  if (data.warnings.length > 200) $("warnings").append(make("li", { class: "soft", text: `… ${data.warnings.length - 200} more` }));

  show("opaque-box", data.opaque);
  for (const o of data.opaque) $("opaque").append(make("tr", {}, make("td", { text: o.n }), make("td", { text: o.t })));
  show("values-box", data.values);
  for (const v of data.values) $("values").append(make("tr", {}, make("td", { text: v.n }), make("td", { text: v.t })));
  $("values-title").textContent = `Values (${data.values.length.toLocaleString("en")})`;
  if (data.scan) {
    $("scan-box").hidden = false;
    $("scan").textContent = data.scan;
    $("findings").hidden = data.findings.length === 0;
    for (const f of data.findings) {
      $("findings").tBodies[0].append(make("tr", {}, make("td", { text: f.g, class: f.g }), make("td", { text: f.n }), make("td", { text: f.p })));
    }
  }

  // The map: a treemap of the module shown, what is in each tile in outline.
  // descend passes through modules that only hold another.
  function descend(node) {
    for (;;) {
      const kids = [...node.kids.values()];
      if (kids.length !== 1 || node.rows || isTensor(kids[0])) return node;
      node = kids[0];
    }
  }

  let shown = descend(root);
  if (data.pair) $("map-hint").append(" Colour is relative drift, from blue for none to red for as much as the values themselves.");
  if (data.left) $("map-hint").append(` ${plural(data.left, "smaller tensor")} not shown.`);

  // squarify lays out nodes in a rectangle, areas by bytes, tiles near to squares
  // (Bruls, Huizing, van Wijk: Squarified Treemaps, 2000).
  function squarify(nodes, x, y, w, h) {
    const list = nodes.filter((n) => n.bytes > 0).sort((a, b) => b.bytes - a.bytes);
    let left = list.reduce((sum, n) => sum + n.bytes, 0);
    const out = [];
    for (let i = 0; i < list.length && w > 0 && h > 0;) {
      const side = Math.min(w, h), scale = w * h / left;
      let sum = 0, best = Infinity, end = i;
      for (; end < list.length; end++) {
        const next = sum + list[end].bytes, depth = next * scale / side;
        const thin = list[end].bytes * scale / depth, thick = list[i].bytes * scale / depth;
        const worst = Math.max(depth / thin, thick / depth);
        if (worst > best) break;
        best = worst;
        sum = next;
      }
      const depth = sum * scale / side;
      let at = 0;
      for (; i < end; i++) {
        const length = list[i].bytes * scale / depth;
        out.push(w >= h ? { node: list[i], x, y: y + at, w: depth, h: length } : { node: list[i], x: x + at, y, w: length, h: depth });
        at += length;
      }
      left -= sum;
      if (w >= h) { x += depth; w -= depth; } else { y += depth; h -= depth; }
    }
    return out;
  }

  const hue = (name) => {
    let h = 7;
    for (const c of name) h = (h * 31 + c.codePointAt(0)) % 360;
    return h * 137 % 360;
  };

  // heat is a module's or tensor's drift, between 0 and 1.
  function heat(node) {
    let most = 0;
    for (const at of node.rows ?? []) most = Math.max(most, data.rows[at].k === "same" ? 0 : Math.min(1, data.rows[at].f?.l2 ?? 1));
    for (const kid of node.kids.values()) most = Math.max(most, heat(kid));
    return most;
  }

  const paint = (node) => data.pair
    ? `hsl(${Math.round(200 - 190 * Math.sqrt(heat(node)))} 62% 72%)`
    : `hsl(${hue(node.name)} 45% 74%)`;

  function tile({ node, x, y, w, h }) {
    const text = `${path(node)}, ${isTensor(node) ? rowText(data.rows[node.rows[0]]) : plural(node.count, "tensor")}, ${size(node.bytes)}`;
    const button = make("button", { type: "button", class: "tile", title: text, "aria-label": text, onclick: () => enter(node) });
    button.style.cssText = `left:${x}px;top:${y}px;width:${w}px;height:${h}px;background:${paint(node)}`;
    if (w > 36 && h > 18) button.append(make("span", {}, make("b", { text: node.name }), make("small", { text: size(node.bytes) })));
    if (w > 40 && h > 46) {
      for (const k of squarify([...node.kids.values()], 4, 22, w - 10, h - 28).slice(0, 60)) {
        const i = make("i", { "aria-hidden": "true" });
        i.style.cssText = `left:${k.x}px;top:${k.y}px;width:${k.w}px;height:${k.h}px`;
        button.append(i);
      }
    }
    return button;
  }

  const rowText = (row) => `${row.d} ${row.s}`;

  // drawMap also keeps the focus on the tile that has it when the window changes.
  function drawMap(focus) {
    const box = $("map"), at = [...box.children].indexOf(document.activeElement);
    const tiles = squarify([...shown.kids.values()], 0, 0, box.clientWidth, box.clientHeight);
    box.replaceChildren(...tiles.map(tile));
    if (tiles.length === 0) box.append(make("p", { class: "hint", text: "No tensor here has bytes." }));
    const steps = [];
    for (let n = shown; n; n = n.parent) steps.unshift(n);
    $("crumbs").replaceChildren(...steps.map((n) => {
      const b = make("button", { type: "button", text: n.name || (n === root ? "all" : "\"\""), onclick: () => enter(n) });
      if (n === shown) b.setAttribute("aria-current", "true");
      return b;
    }));
    if (focus) (box.querySelector("button") ?? $("crumbs").lastChild).focus();
    else if (at >= 0) box.children[at]?.focus();
  }

  function enter(node) {
    if (isTensor(node)) return detail(node.rows[0]);
    shown = descend(node);
    drawMap(true);
  }

  function back() {
    let up = shown.parent;
    while (up && descend(up) === shown) up = up.parent;
    if (!up) return;
    shown = up;
    drawMap(true);
  }

  $("map").addEventListener("keydown", (e) => { if (e.key === "Escape") back(); });
  $("crumbs").addEventListener("keydown", (e) => { if (e.key === "Escape") back(); });
  new ResizeObserver(() => drawMap(false)).observe($("map"));

  // Histograms.
  function bars(counts, from, to, lo, hi, width, height) {
    const top = Math.max(...counts), step = (to - from) / counts.length;
    let d = "";
    counts.forEach((n, i) => {
      if (n === 0) return;
      const x = (from + i * step - lo) / (hi - lo) * width, w = Math.max(step / (hi - lo) * width - .3, .4), h = Math.max(n / top * height, .6);
      d += `M${x.toFixed(2)} ${height}v${(-h).toFixed(2)}h${w.toFixed(2)}v${h.toFixed(2)}z`;
    });
    return d;
  }

  function spark(s) {
    const e = svg("svg", { class: "hist", viewBox: "0 0 76 20", "aria-hidden": "true" });
    if (s?.h) e.append(svg("path", { d: bars(s.h, s.h0 ?? 0, s.h1 ?? 0, s.h0 ?? 0, s.h1 ?? 0, 76, 20) }));
    return e;
  }

  function bigHistogram(a, b) {
    const both = [a, b].filter((s) => s?.h);
    if (both.length === 0) return [];
    const lo = Math.min(...both.map((s) => s.h0 ?? 0)), hi = Math.max(...both.map((s) => s.h1 ?? 0));
    const e = svg("svg", { class: "big", viewBox: "0 0 600 180", preserveAspectRatio: "none", role: "img", "aria-label": "Histogram of the values" });
    if (a?.h) e.append(svg("path", { d: bars(a.h, a.h0 ?? 0, a.h1 ?? 0, lo, hi, 600, 180) }));
    if (b?.h && b !== a) e.append(svg("path", { class: "other", d: bars(b.h, b.h0 ?? 0, b.h1 ?? 0, lo, hi, 600, 180) }));
    return [e, make("div", { class: "axis" }, make("span", { text: number(lo) }), make("span", { text: number(hi) }))];
  }

  // Details of one tensor.
  function facts(row) {
    const list = [["dtype", row.d], ["shape", row.s], ["elements", row.e.toLocaleString("en")], ["size", size(row.b)]];
    if (row.x) list.push(["note", row.x]);
    if (row.k) list.push(["second file", row.k]);
    if (row.f) {
      list.push(["relative drift, |B - A| / |A|", number(row.f.l2)], ["largest difference", number(row.f.abs)], ["largest, relative to the larger value", number(row.f.rel)], ["values that differ", row.f.n.toLocaleString("en")]);
    }
    for (const [s, suffix] of [[row.v, row.w && row.w !== row.v ? " (first)" : ""], [row.k === "same" ? undefined : row.w, " (second)"]]) {
      if (!s) continue;
      if (s.lo !== undefined) list.push(["range" + suffix, `${number(s.lo)} … ${number(s.hi)}`], ["mean ± std" + suffix, `${number(s.mean)} ± ${number(s.std)}`]);
      for (const [k, v] of [["NaN", s.nan], ["infinite", s.inf], ["zeros", s.zero]]) if (v) list.push([k + suffix, v.toLocaleString("en")]);
      if (s.dead) list.push(["dead channels" + suffix, `${s.dead.toLocaleString("en")} of ${s.ch.toLocaleString("en")} are all zeros`]);
    }
    return list;
  }

  function detail(at) {
    const row = data.rows[at], dl = make("dl");
    for (const [k, v] of facts(row)) dl.append(make("dt", { text: k }), make("dd", { text: v }));
    $("detail-title").textContent = row.n || "(root)";
    $("detail-body").replaceChildren(dl, ...bigHistogram(row.v, row.k === "same" ? undefined : row.w));
    $("detail").showModal();
  }

  $("detail").addEventListener("click", (e) => { if (e.target === $("detail")) $("detail").close(); });

  // The tree. What is closed is not built yet.
  const flags = new Map();
  for (const w of data.warnings) flags.set(w.r, w.t);

  function line(at, name) {
    const row = data.rows[at], s = row.v ?? row.w;
    let last = s ? `${number(s.mean)} ± ${number(s.std)}` : row.x ?? "";
    let kind = "soft";
    if (data.pair) last = row.k === "values" && row.f ? `drift ${number(row.f.l2)}` : row.k;
    if (flags.has(at)) { last = flags.get(at); kind = "flag"; }
    if (data.pair && row.k !== "same") kind = "flag";
    return make("button", { type: "button", class: "row", onclick: () => detail(at) },
      make("span", { text: name || "(root)" }), make("span", { text: row.d, class: "soft" }), make("span", { text: row.s }),
      make("span", { text: size(row.b), class: "num" }), spark(s), make("span", { text: last, class: kind }));
  }

  function branch(node) {
    const out = [];
    for (const kid of node.kids.values()) {
      for (const at of kid.rows ?? []) out.push(line(at, kid.name));
      if (kid.kids.size) out.push(module(kid));
    }
    return out;
  }

  function module(node) {
    let name = node.name;
    for (const end = descend(node); node !== end;) {
      node = [...node.kids.values()][0];
      name += "." + node.name;
    }
    const body = make("div");
    const d = make("details", {}, make("summary", { text: name }, make("small", { text: `${plural(node.count, "tensor")}, ${size(node.bytes)}` })), body);
    d.fill = () => { if (!body.firstChild) body.append(...branch(node)); };
    d.addEventListener("toggle", () => { if (d.open) d.fill(); });
    return d;
  }

  function drawTree() {
    $("tree").replaceChildren(...branch(root));
    if (data.left) $("tree").append(make("p", { class: "hint", text: `${plural(data.left, "smaller tensor")} not shown.` }));
    if (data.rows.length <= 24) openAll(true);
    const only = $("tree").querySelectorAll(":scope > details");
    if (only.length === 1) {
      only[0].fill();
      only[0].open = true;
    }
  }

  function openAll(open) {
    const most = 3000;
    for (let round = 0; round < 40; round++) {
      const list = [...$("tree").querySelectorAll("details")].filter((d) => d.open !== open);
      if (list.length === 0 || $("tree").querySelectorAll(".row").length > most) return;
      for (const d of list) { d.fill(); d.open = open; }
    }
  }

  $("open-all").addEventListener("click", () => openAll(true));
  $("close-all").addEventListener("click", () => openAll(false));

  function search() {
    const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length === 0) {
      $("found").textContent = "";
      return drawTree();
    }
    const hits = [];
    data.rows.forEach((row, at) => {
      const text = `${row.n} ${row.d} ${row.s} ${row.k ?? ""} ${flags.get(at) ?? ""}`.toLowerCase();
      if (words.every((w) => text.includes(w))) hits.push(at);
    });
    $("found").textContent = hits.length > 500 ? `${hits.length.toLocaleString("en")} found, 500 shown` : `${hits.length} found`;
    $("tree").replaceChildren(...hits.slice(0, 500).map((at) => line(at, data.rows[at].n)));
  }

  $("search").addEventListener("input", search);
  document.addEventListener("keydown", (e) => {
    if (e.key === "/" && document.activeElement.tagName !== "INPUT" && !$("detail").open) {
      e.preventDefault();
      $("search").focus();
    }
  });

  drawTree();
  drawMap(false);
})();
