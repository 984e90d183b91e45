"""Mathematics as MathML, which browsers draw by themselves: no script, no font to fetch."""

from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

logger = logging.getLogger(__name__)


def mathml(node: nodes.Element, *, block: bool) -> str:
    text = node.astext()
    if block and r"\\" in text:
        text = rf"\begin{{aligned}}{text}\end{{aligned}}"
    try:
        return str(latex2mathml.tex2mathml(text, as_block=block))
    except SyntaxError as error:
        logger.warning("cannot draw %r: %s", text, error, location=node)
        return f"<code>{text}</code>"


def visit_math(self: Any, node: nodes.math) -> None:
    self.body.append(mathml(node, block=False))
    raise nodes.SkipNode


def visit_displaymath(self: Any, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", CLASS="math-block"))
    self.body.append(mathml(node, block=True))
    if node.get("number"):
        number = get_node_equation_number(self, node)
        self.body.append(f'<span class="eqno">({number})</span>')
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
