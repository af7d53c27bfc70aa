// Niceties only: the page says everything without this.
(() => {
  "use strict";

  // Sorting by a click on a column's head; absent figures stay at the end either way.
  for (const table of document.querySelectorAll("table.compare")) {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    const value = (row, column, numeric) => {
      const cell = row.cells[column];
      if (!numeric) return cell.textContent.trim();
      return cell.dataset.value === undefined ? null : Number(cell.dataset.value);
    };
    heads.forEach((head, column) => {
      if (!head.dataset.sort || body.rows.length < 2) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        const numeric = head.dataset.sort === "number";
        const rows = [...body.rows].sort((a, b) => {
          const x = value(a, column, numeric);
          const y = value(b, column, numeric);
          if (x === null || y === null) return (x === null) - (y === null);
          const order = numeric ? x - y : x.localeCompare(y, "en", { numeric: true });
          return down ? -order : order;
        });
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        body.append(...rows);
      });
    });
  }

  // The figures under the pointer, beside the chart's heading.
  for (const chart of document.querySelectorAll("figure.chart")) {
    const readout = chart.querySelector("output");
    if (!readout) continue;
    chart.addEventListener("pointerover", (event) => {
      const title = event.target.querySelector?.(":scope > title");
      readout.textContent = title ? title.textContent : "";
    });
    chart.addEventListener("pointerleave", () => {
      readout.textContent = "";
    });
  }

  // Paper cannot be unfolded.
  addEventListener("beforeprint", () => {
    for (const fold of document.querySelectorAll("details")) fold.open = true;
  });
})();
