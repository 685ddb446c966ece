/* Copies what a button names. Nothing else here runs. */
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
