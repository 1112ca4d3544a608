"use strict";
/* Optional: selects one chart instead of showing all of them, and sorts tables. */
(function () {
  const panels = Array.from(document.querySelectorAll(".panel"));
  const choice = document.getElementById("class-choice");
  const notion = () => document.querySelector("input[name=notion]:checked").value;

  function fillClasses() {
    const choices = panels.filter((panel) => panel.dataset.notion === notion() && panel.dataset.column);
    choice.replaceChildren();
    choices.forEach((panel) => {
      const option = document.createElement("option");
      option.value = panel.dataset.column;
      option.textContent = panel.dataset.name;
      choice.append(option);
    });
    choice.parentElement.hidden = choices.length === 0;
  }

  function show() {
    panels.forEach((panel) => {
      const isColumn = !panel.dataset.column || panel.dataset.column === choice.value;
      panel.hidden = !(panel.dataset.notion === notion() && isColumn);
    });
  }

  function sortBy(heading) {
    const table = heading.closest("table");
    const place = heading.cellIndex;
    const order = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    const key = (row) => row.cells[place].dataset.value || row.cells[place].textContent;
    const compare = (a, b) => {
      const [x, y] = [key(a), key(b)];
      const numbers = x !== "" && y !== "" && !isNaN(x) && !isNaN(y);
      return order * (numbers ? x - y : x.localeCompare(y, undefined, { numeric: true }));
    };
    const rows = Array.from(table.tBodies[0].rows).sort(compare);
    table.tBodies[0].append(...rows);
    for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", order === 1 ? "ascending" : "descending");
  }

  document.documentElement.classList.add("scripted");
  /* There is space for the table next to its diagram, except on phones. */
  if (window.matchMedia("(min-width: 861px)").matches) {
    document.querySelectorAll(".panel details").forEach((details) => { details.open = true; });
  }
  document.querySelectorAll("th button").forEach((button) => {
    button.addEventListener("click", () => sortBy(button.closest("th")));
  });
  document.querySelectorAll("input[name=notion]").forEach((input) => {
    input.addEventListener("change", () => { fillClasses(); show(); });
  });
  if (choice) {  // pages without charts to choose from only sort their tables
    choice.addEventListener("change", show);
    fillClasses();
    show();
  }
})();
