// Sorts tables by a click on a heading and filters the table of jobs, also by a click on a rule. Without it the page has the same rows in their order.
(() => {
  "use strict";
  const value = (row, column) => {
    const cell = row.cells[column];
    return "n" in cell.dataset ? Number(cell.dataset.n) : cell.textContent.trim().toLowerCase();
  };
  const sort = (table, column, heading) => {
    const body = table.tBodies[0];
    const numbers = heading.classList.contains("num");
    const before = heading.getAttribute("aria-sort");
    const falling = before ? before === "ascending" : numbers; // numbers: the largest first
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", falling ? "descending" : "ascending");
    const rows = Array.from(body.rows, (row, place) => ({ row, place, key: value(row, column) }));
    rows.sort((a, b) => {
      const order = typeof a.key === "number" ? a.key - b.key : a.key.localeCompare(b.key, "en", { numeric: true });
      return (falling ? -order : order) || a.place - b.place;
    });
    body.append(...rows.map((entry) => entry.row));
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    Array.from(table.tHead.rows[0].cells).forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      button.addEventListener("click", () => sort(table, column, heading));
      heading.append(button);
    });
  }
  for (const table of document.querySelectorAll("table.filterable")) {
    const rows = Array.from(table.tBodies[0].rows);
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const keys = rows.map((row) => row.querySelector(".key")?.textContent ?? "");
    const bar = document.createElement("div");
    bar.className = "filters";
    const search = document.createElement("input");
    search.type = "search";
    search.placeholder = `Filter ${table.dataset.what}`;
    search.setAttribute("aria-label", search.placeholder);
    const choice = document.createElement("select");
    choice.setAttribute("aria-label", "Limiter");
    choice.append(new Option("all limiters", ""), ...[...new Set(keys)].sort().map((key) => new Option(key, key)));
    const rules = rows.map((row) => (row.dataset.rules ?? "").split(" ").filter(Boolean));
    const found = [...new Set(rules.flat())].sort();
    const finding = document.createElement("select");
    finding.setAttribute("aria-label", "Finding");
    finding.append(new Option("all findings", ""), ...found.map((rule) => new Option(rule, rule)));
    const shown = document.createElement("output");
    const filter = () => {
      const wanted = search.value.trim().toLowerCase().split(/\s+/);
      let count = 0;
      rows.forEach((row, place) => {
        const fits = (!choice.value || keys[place] === choice.value) && (!finding.value || rules[place].includes(finding.value)) && wanted.every((word) => texts[place].includes(word));
        row.hidden = !fits;
        count += fits;
      });
      shown.value = count === rows.length ? "" : `${count} of ${rows.length} shown`;
    };
    search.addEventListener("input", filter);
    choice.addEventListener("change", filter);
    finding.addEventListener("change", filter);
    for (const name of document.querySelectorAll("[data-rule]")) {
      if (!found.includes(name.dataset.rule)) continue;
      const link = document.createElement("a");
      link.href = "#worst";
      link.title = "Show its jobs";
      link.addEventListener("click", () => {
        [search.value, choice.value, finding.value] = ["", "", name.dataset.rule];
        filter();
      });
      name.replaceWith(link);
      link.append(name);
    }
    bar.append(search, choice, finding, shown);
    (table.closest(".scroll") ?? table).before(bar);
  }
})();
