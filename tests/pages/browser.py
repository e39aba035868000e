"""Chromium without a window, with a directory of its own and without any network."""

import tempfile
import time

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from parts import CHROMIUM

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PHONE, DESKTOP = 390, 1280
PATIENCE_SECONDS = 20
HIDDEN = """() => [...document.querySelectorAll('details')]
    .filter(part => ![...part.children].some(child => child.tagName !== 'SUMMARY' && child.checkVisibility({contentVisibilityAuto: true})
        && child.getBoundingClientRect().height > 0))
    .map(part => part.querySelector('summary').textContent)"""


class Browser:
    def __init__(self):
        self.directory = tempfile.TemporaryDirectory()
        self.playwright = sync_playwright().start()
        self.context = self.playwright.chromium.launch_persistent_context(
            self.directory.name, executable_path=CHROMIUM, headless=True, args=FLAGS, viewport={"width": DESKTOP, "height": 900}
        )
        self.axe = Axe()

    def close(self):
        self.context.close()
        self.playwright.stop()
        self.directory.cleanup()

    def open(self, path):
        return Opened(self, path)


class Opened:
    """A page that is open, and everything that it should not have done."""

    def __init__(self, browser, path):
        self.axe = browser.axe
        self.complaints = []
        self.page = browser.context.new_page()
        address = path.resolve().as_uri()
        self.page.on("console", lambda message: self.complaints.append(f"console: {message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("request", lambda request: request.url.split("#")[0] == address or self.complaints.append(f"request: {request.url}"))
        self.page.goto(address)

    def close(self):
        self.page.close()

    def look(self, width, scheme):
        self.page.emulate_media(color_scheme=scheme)
        self.page.set_viewport_size({"width": width, "height": 900})

    def violations(self):
        """What axe finds: contrast, names, headings, tables, focus."""
        found = self.axe.run(self.page, options={"resultTypes": ["violations"]}).response["violations"]
        return [f"{rule['id']}: {node['html'][:160]}: {node.get('failureSummary', '')[:200]}" for rule in found for node in rule["nodes"][:3]]

    def overflow(self):
        """How far the page itself is wider than the screen."""
        return self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def hidden_in_print(self):
        """Closed parts of which paper would not show what is in them."""
        self.page.evaluate("document.querySelectorAll('details').forEach(part => part.open = false)")
        self.page.emulate_media(media="print")
        # A busy browser lays the page out for paper a moment later.
        end = time.monotonic() + PATIENCE_SECONDS
        while (found := self.page.evaluate(HIDDEN)) and time.monotonic() < end:
            time.sleep(0.1)
        self.page.emulate_media(media="screen")
        return found

    def open_all(self):
        self.page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")

    def reach_by_keyboard(self, limit=400):
        """How many of the parts that open have the focus once while Tab is pressed, and whether Enter opens each."""
        wanted = self.page.evaluate("""() => {
            document.querySelectorAll('details').forEach(part => part.open = false);
            const seen = [...document.querySelectorAll('summary')].filter(part => part.checkVisibility());
            document.activeElement.blur();
            return seen.length;
        }""")
        reached = 0
        for _ in range(limit):
            if reached == wanted:
                break
            self.page.keyboard.press("Tab")
            if self.page.evaluate("document.activeElement.tagName === 'SUMMARY'"):
                self.page.keyboard.press("Enter")
                opened = self.page.evaluate("document.activeElement.parentElement.open")
                self.page.keyboard.press("Enter")
                reached += bool(opened)
        return wanted, reached

    def crowded(self):
        """Texts of the picture that leave their box, boxes that overlap, and numbers of arrows that hide one another."""
        return self.page.evaluate("""() => {
            const found = [];
            const area = node => node.getBBox();
            const inside = (one, two) => one.x >= two.x - 1 && one.y >= two.y - 1
                && one.x + one.width <= two.x + two.width + 1 && one.y + one.height <= two.y + two.height + 1;
            const meet = (one, two) => one.x < two.x + two.width - 0.5 && two.x < one.x + one.width - 0.5
                && one.y < two.y + two.height - 0.5 && two.y < one.y + one.height - 0.5;
            const picture = document.querySelector('svg.picture');
            const all = selector => [...picture.querySelectorAll(selector)];
            for (const text of all('.card-title, .group .detail, .group .title, .outside .title, .address')) {
                const frame = text.parentElement.querySelector('rect') || text.closest('[data-band]').querySelector('rect');
                if (!inside(area(text), area(frame))) found.push('leaves its box: ' + text.textContent);
            }
            for (const selector of ['.card', '.band', '.badge', '.zone', '.port', '.card-title, .card ~ .detail', '[data-band] text']) {
                const nodes = all(selector);
                nodes.forEach((one, index) => nodes.slice(index + 1).forEach(two => {
                    if (meet(area(one), area(two))) {
                        found.push(selector + ' overlap: ' + one.parentElement.textContent.slice(0, 40) + ' and ' + two.parentElement.textContent.slice(0, 40));
                    }
                }));
            }
            const whole = picture.viewBox.baseVal;
            for (const node of all('rect, text, path')) {
                if (node.closest('title, desc') || !node.getBBox) continue;
                if (!inside(area(node), whole)) found.push('outside of the picture: ' + node.outerHTML.slice(0, 80));
            }
            return found;
        }""")
