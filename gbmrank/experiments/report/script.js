"use strict";
// Tables can be sorted by a click on a column's head, and long ones filtered. The page is whole without it.
(() => {
  const LONG = 8;
  const number = (text) => {
    const found = text.replace(/\u2212/g, "-").replace(/\u2009/g, "").match(/-?\d+(\.\d+)?(e-?\d+)?/);
    return found ? Number(found[0]) : NaN;
  };
  const compare = (a, b) => {
    const x = number(a), y = number(b);
    if (!Number.isNaN(x) && !Number.isNaN(y)) return x - y;
    if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
    return a.localeCompare(b);
  };
  for (const table of document.querySelectorAll("table")) {
    const body = table.tBodies[0];
    const heads = table.tHead ? [...table.tHead.rows[0].cells] : [];
    if (!body || body.rows.length < 2 || heads.length < 2) continue;
    heads.forEach((head, at) => {
      const text = (row) => row.cells[at] ? row.cells[at].textContent.trim() : "";
      const sort = () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((each) => each.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...body.rows].sort((a, b) => (down ? -1 : 1) * compare(text(a), text(b)));
        body.append(...rows);
      };
      head.tabIndex = 0;
      head.classList.add("sortable");
      head.addEventListener("click", sort);
      head.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(); }
      });
    });
    if (body.rows.length < LONG) continue;
    const box = document.createElement("input");
    box.type = "search";
    box.placeholder = "Filter rows";
    box.setAttribute("aria-label", "Filter rows");
    box.className = "filter";
    box.addEventListener("input", () => {
      const wanted = box.value.toLowerCase();
      for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
    table.parentElement.before(box);
  }
})();
