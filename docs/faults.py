"""What is wrong with the pages of a built site."""

import html
import re
from dataclasses import dataclass
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LARGEST_REFERENCE = 300_000  # bytes of a page below api/

# The tags that load something; the rest of a page need not be parsed.
LOADING_TAGS = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|object|link)\b(?:[^>"']|"[^"]*"|'[^']*')*>""", re.IGNORECASE
)
LINK = re.compile(r"""<a\b(?:[^>"']|"[^"]*"|'[^']*')*?\shref=["']([^"']*)["']""", re.IGNORECASE)
ANCHOR = re.compile(r"""\s(?:id|name)=["']([^"']+)["']""", re.IGNORECASE)
# Where a dollar sign is meant: code, scripts, and equations, which are between \( and \).
NO_PROSE = re.compile(
    r"<(script|style|pre|code|kbd|svg)\b.*?</\1>|<!--.*?-->|"
    r"""<(span|div) class="(?:[^"]* )?math\b[^"]*"[^>]*>.*?</\2>|<dt class="sig\b[^"]*"[^>]*>.*?</dt>""",
    re.DOTALL | re.IGNORECASE,
)
TAG = re.compile(r"""<(?:[^>"']|"[^"]*"|'[^']*')*>""")


class Page(HTMLParser):
    """What is wrong with a page of the site: pictures without a text, and what would be loaded from
    elsewhere.
    """

    LOADED = {
        **dict.fromkeys(("script", "img", "iframe", "source", "video", "audio"), "src"),
        "object": "data",
    }

    def __init__(self, text):
        super().__init__()
        self.faults = []
        for tag in LOADING_TAGS.findall(text):
            self.feed(tag)
            self.reset()  # what stands in a script is no part of the page

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        address = attrs.get(self.LOADED.get(tag, ""), "") or ""
        if tag == "link" and attrs.get("rel") in ("stylesheet", "preload", "icon", "shortcut icon"):
            address = attrs.get("href", "")
        if re.match(r"(https?:)?//", address):
            self.faults.append(f"<{tag}> loads {address}")
        if tag == "img" and ("alt" not in attrs or re.search(r"\.(png|svg|jpe?g)$", attrs["alt"] or "")):
            self.faults.append(f"<img> has no alternative text: {address[:80]}")


def dollars(text):
    """Where a `$` is left in the prose of a page: an equation that was not set. Before a digit it is money,
    and the one that closes an equation is seen all the same."""
    prose = TAG.sub(" ", NO_PROSE.sub(" ", text))
    return [" ".join(found.split()) for found in re.findall(r".{0,40}\$(?!\d).{0,40}", prose)]


@dataclass(frozen=True)
class Site:
    """A folder of pages."""

    root: Path

    @cache
    def text(self, path):
        return path.read_text(encoding="utf-8")

    @cache
    def anchors(self, path):
        return {html.unescape(found) for found in ANCHOR.findall(self.text(path))}

    def dead_links(self, page):
        """Links of a page to what is not in the site; addresses elsewhere are not looked at."""
        for address in sorted({html.unescape(found) for found in LINK.findall(self.text(page))}):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if not target.is_file():
                yield f"links to {address}, which is not there"
            elif parts.fragment and target.suffix == ".html":
                if unquote(parts.fragment) not in self.anchors(target):
                    yield f"links to {address}: the page has no such place"


def page_faults(site, page):
    """What is wrong with one page."""
    text, name = site.text(page), page.relative_to(site.root).as_posix()
    found = Page(text).faults
    found += [f"an equation is not set: {place}" for place in dollars(text)]
    found += site.dead_links(page)
    if name.startswith("api/") and len(text.encode()) > LARGEST_REFERENCE:
        found.append(f"has {len(text.encode()):,} bytes; at most {LARGEST_REFERENCE:,} are meant")
    if not name.startswith("_static/") and '<meta name="description"' not in text:
        found.append("has no description")
    return [f"{name}: {fault}" for fault in found]


def faults(root):
    """One line for each fault of the pages of a site."""
    site = Site(Path(root).resolve())
    return [fault for page in sorted(site.root.rglob("*.html")) for fault in page_faults(site, page)]
