"""What tests look for in a page: its elements, whether they are well formed, and the text in them."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

# what stands apart on the page; text in anything else runs on
INLINE = {"a", "b", "code", "strong", "tspan"}
VOID = {"meta", "br", "hr", "img", "input", "link", "wbr", "col"}


@dataclass
class Element:
    """An element with its attributes, the text inside, and the names of what it lies in."""

    tag: str
    attributes: dict[str, str]
    inside: tuple[str, ...]
    text: str = ""


@dataclass
class Page(HTMLParser):
    """All elements of a page; raises ValueError where tags do not nest."""

    elements: list[Element] = field(default_factory=list)
    open: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in INLINE:
            self.handle_data(" ")
        element = Element(tag, {k: v or "" for k, v in attrs}, tuple(e.tag for e in self.open))
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, {k: v or "" for k, v in attrs}, tuple(e.tag for e in self.open)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1].tag != tag:
            raise ValueError(f"line {self.getpos()[0]}: </{tag}> in {[e.tag for e in self.open]}")
        self.open.pop()
        if tag not in INLINE:
            self.handle_data(" ")

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text += data

    def all(self, tag: str, **attributes: str) -> list[Element]:
        """The elements of this name with these attributes (`class_` and `id_` as `class` and `id`)."""
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        return [
            e
            for e in self.elements
            if e.tag == tag and all(e.attributes.get(k) == v for k, v in wanted.items())
        ]

    def one(self, tag: str, **attributes: str) -> Element:
        """The one element of this name with these attributes."""
        (element,) = self.all(tag, **attributes)
        return element


def parse(html: str) -> Page:
    """The page, walked to its end. Raises ValueError where it is not well formed."""
    page = Page()
    page.feed(html)
    page.close()
    if page.open:
        raise ValueError(f"never closed: {[e.tag for e in page.open]}")
    return page


def words(text: str) -> str:
    """Text with all white space as single spaces."""
    return " ".join(text.replace("\u00a0", " ").split())
