/* Copies the text that a button names, and says when the console does not answer. Nothing else runs here. */
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(source.textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(source);
    button.textContent = "Press Ctrl+C";
  }
});
const show = (root) => root.querySelectorAll("[data-copy][hidden]").forEach((button) => { button.hidden = false; });
show(document);
document.addEventListener("htmx:afterSettle", () => show(document));
document.addEventListener("htmx:sendError", () => {
  const state = document.querySelector("footer.state");
  if (!state || state.querySelector("[data-gone]")) return;
  const line = document.createElement("p");
  line.className = "stale";
  line.setAttribute("role", "status");
  line.dataset.gone = "";
  line.textContent = `The console has not answered since ${new Date().toISOString().slice(11, 19)} UTC. This page shows older data. Reload the page, or restart the console.`;
  state.prepend(line);
});
