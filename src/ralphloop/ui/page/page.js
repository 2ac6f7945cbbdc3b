// Keeps the page alive: replaces the parts that changed, counts times, sends forms in the background.
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const link = $("link"), said = $("said"), waiting = new Map();
  document.documentElement.classList.add("js");
  // So that a link of a message, which names no path, finds the way (door.js).
  try { localStorage.setItem("ralph", location.pathname.split("/")[1]); } catch { /* private mode */ }

  // --- times: the server names moments, the browser counts from there in its own zone
  const two = (n) => String(n).padStart(2, "0");
  const span = (s) => {
    s = Math.max(0, Math.floor(s));
    if (s < 60) return `${s}s`;
    if (s < 3600) return `${Math.floor(s / 60)}m ${two(s % 60)}s`;
    if (s < 86400) return `${Math.floor(s / 3600)}h ${two(Math.floor((s % 3600) / 60))}m`;
    return `${Math.floor(s / 86400)}d ${two(Math.floor((s % 86400) / 3600))}h`;
  };
  const clock = (at) => {
    const day = { month: "short", day: "numeric" }, hour = { hour: "2-digit", minute: "2-digit" };
    const far = Math.abs(Date.now() - at) > 20 * 3600e3;
    return at.toLocaleString([], far ? { ...day, ...hour } : hour);
  };
  const times = () => {
    for (const one of document.querySelectorAll("time[data-as]")) {
      const at = new Date(one.dateTime), how = one.dataset.as;
      if (isNaN(at)) continue;
      const left = (at - Date.now()) / 1000;
      const words = how === "since" ? span(-left)
        : how === "until" ? `in ${span(left)}, at ${clock(at)}` : clock(at);
      if (one.textContent !== words) one.textContent = words;
    }
  };

  // --- parts
  const heard = () => [...document.querySelectorAll("[data-say]")].map((one) => {
    const copy = one.cloneNode(true);
    copy.querySelectorAll("[aria-hidden]").forEach((mark) => mark.remove());
    return copy.textContent.trim();
  });
  const atEnd = (log) => !log || log.scrollHeight - log.scrollTop - log.clientHeight < 30;
  const put = (name, digest, html) => {
    const part = $(name);
    if (!part) return;
    if (part.contains(document.activeElement) && document.activeElement.form) {
      waiting.set(name, [name, digest, html]);  // somebody writes there
      return;
    }
    const fresh = document.createElement("template");
    fresh.innerHTML = html;
    for (const old of part.querySelectorAll("details[id], textarea[id]")) {
      const now = fresh.content.getElementById(old.id);
      if (now && old.tagName === "DETAILS") now.open = old.open;
      else if (now) now.value = old.value;
    }
    const focused = part.contains(document.activeElement) && document.activeElement;
    const path = focused && (focused.closest("[id]") || part).id;
    const log = part.querySelector(".log"), follow = atEnd(log), top = log && log.scrollTop;
    part.replaceChildren(fresh.content);
    part.dataset.digest = digest;
    const moved = part.querySelector(".log");
    if (moved) moved.scrollTop = follow ? moved.scrollHeight : top;
    const again = focused && path && $(path);
    if (again) (again.querySelector("summary") || again).focus({ preventScroll: true });
  };
  const settle = () => {
    for (const told of [...waiting.values()]) { waiting.delete(told[0]); put(...told); }
    times();
  };
  const changed = (parts) => {
    const before = heard();
    parts.forEach((told) => put(...told));
    times();
    const news = heard().filter((words) => !before.includes(words));
    if (news.length) $("say").textContent = news.join(". ");
    const title = document.querySelector("h1");
    if (title) document.title = `${heard()[0] || "ralph"} · ralph`;
  };
  // --- forms
  const tell = (words, done) => {
    said.hidden = false;
    said.className = done ? "" : "no";
    said.textContent = words;
    said.scrollIntoView({ block: "nearest" });
  };
  const again_soon = () => {  // a decision that is on its way
    if (document.querySelector("[data-again]")) setTimeout(() => location.reload(), 4000);
  };
  const decided = (form, found) => {
    if (found.go) { location.assign(found.go); return; }
    const fresh = document.createElement("template");
    fresh.innerHTML = found.html;
    form.closest("#decide").replaceWith(fresh.content);
    $("decide").scrollIntoView({ block: "end" });
    again_soon();
  };
  document.addEventListener("submit", async (event) => {
    const form = event.target, button = event.submitter;
    event.preventDefault();
    const fields = new URLSearchParams(new FormData(form));
    if (button && button.name) fields.append(button.name, button.value);
    if (button) button.disabled = true;
    try {
      const answer = await fetch(form.getAttribute("action"), {
        method: "POST",
        headers: { Accept: "application/json" },
        body: fields,
      });
      const json = answer.headers.get("content-type") === "application/json";
      const found = json ? await answer.json() : { words: "It was not taken; reload the page.", done: false };
      if (found.go || (found.html && form.closest("#decide"))) {
        decided(form, found);
        return;
      }
      tell(found.words, found.done);
      if (found.done) {
        form.reset();
        const around = form.closest("details");
        if (around) around.open = false;
        if (document.activeElement) document.activeElement.blur();
      }
    } catch {
      tell("It could not be sent: the connection is lost. Your words are still there.", false);
    }
    if (button) button.disabled = false;
    settle();
  });

  setInterval(times, 1000);
  times();
  if (!link) return;  // a page that stands still
  document.addEventListener("focusout", () => setTimeout(settle, 400));  // a tap still needs its button

  // --- the connection
  let source, beat, later, pause = 1000;
  const end = (words) => {
    source.close();
    clearTimeout(beat);
    clearTimeout(later);
    link.className = "lost";
    link.textContent = words;
  };
  const again = () => {
    end("Connection lost; trying again …");
    later = setTimeout(connect, pause);
    pause = Math.min(pause * 1.6, 15000);
  };
  const soon = () => {  // somebody looks again, or a phone that was put away wakes up
    if (document.hidden || link.className !== "lost") return;
    clearTimeout(later);
    source.close();
    connect();
  };
  const alive = () => {
    clearTimeout(beat);
    beat = setTimeout(again, 40000);
    link.className = "soft small";
    if (link.textContent !== "live") link.textContent = "live";
    pause = 1000;
  };
  function connect() {
    const has = [...document.querySelectorAll("[data-digest]")].map((part) => part.dataset.digest);
    source = new EventSource(`events?has=${has.join(".")}`);
    source.addEventListener("parts", (event) => { alive(); changed(JSON.parse(event.data)); });
    source.addEventListener("full", () => end("Open in too many windows; this one stands still."));
    source.onerror = async () => {
      again();
      const answer = await fetch("./", { method: "HEAD" }).catch(() => null);
      if (answer && answer.status === 401) location.reload();
    };
  }

  document.addEventListener("visibilitychange", soon);
  for (const name of ["online", "focus", "pageshow"]) window.addEventListener(name, soon);
  const log = document.querySelector(".log");
  if (log) log.scrollTop = log.scrollHeight;
  connect();
})();
