"""What MkDocs is told beyond mkdocs.yml: the pages that are made from other files, and a look at what they load.

README, CHANGELOG, CONTRIBUTING and the benchmarks' page stand where people look for them in a repository; here they
become pages. The gallery is made from the scripts that draw it, the reference from the names that likely offers.
"""

from __future__ import annotations

import ast
import logging
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "src"))  # likely's table of names needs nothing else, so it is not installed here

import reference  # noqa: E402

# From the root of the repository to the site.
MOVED = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/README.md": "benchmarks.md",
}
LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\ssrc=["']?(?:https?:)?//[^\s"'>]+"""
    r"""|<link\b[^>]*\srel=["']?(?:stylesheet|preload|preconnect|icon|modulepreload)[^>]*\shref=["']?(?:https?:)?//[^\s"'>]+"""
    r"""|<link\b[^>]*\shref=["']?(?:https?:)?//[^\s"'>]+[^>]*\srel=["']?(?:stylesheet|preload|preconnect|icon)"""
    r"""|@import\s+(?:url\()?["']?(?:https?:)?//[^\s"')]+""",
    re.IGNORECASE,
)
ACRONYMS = {"ais", "dbm", "em", "gan", "nce", "ntm", "rbm", "vae"}
log = logging.getLogger("mkdocs.hooks.likely")


def on_config(config: Any) -> Any:
    """Put the reference's pages into the navigation, and warn of public names that say nothing of themselves."""
    for name in reference.public_names():
        if not reference.docstring(name.home):
            log.warning(f"{name.public} has no docstring: write one in {name.home.rpartition('.')[0]}")
    first, *rooms = reference.pages()
    named = [{reference.title_of(Path(page).stem): page} for page in rooms]
    config.nav.append({"Reference": [{"All names": first}, *named]})
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made from other files."""
    made = {page: at_root((ROOT / source).read_text()) for source, page in MOVED.items()}
    for page, text in (made | {"gallery.md": gallery()} | reference.pages()).items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **others: Any) -> str:
    """Lead links that leave docs/ to the pages that those files became."""
    for source, target in MOVED.items():
        markdown = markdown.replace(f"](../{source}", f"]({target}")
    return markdown


def on_post_page(output: str, page: Any, **others: Any) -> str:
    """Warn, which `--strict` makes an error, of whatever a reader's browser would fetch from elsewhere."""
    for found in LOADED.findall(output):
        log.warning(f"{page.file.src_uri} loads something from elsewhere: {found}")
    return output


def at_root(text: str) -> str:
    """A text of the repository's root with its links as the site has them."""
    text = re.sub(r"\]\((?:\.\./)?docs/", "](", text)
    for source, target in MOVED.items():
        text = text.replace(f"]({source}", f"]({target}")
    return text


def gallery() -> str:
    """Every picture with what it shows, the pages that speak of it, and the script that draws it."""
    docs = ROOT / "docs"
    texts = {path.name: path.read_text() for path in sorted(docs.glob("*.md"))}
    parts = ["# Gallery\n\nEvery picture of these pages, and the script that draws it (`make gallery`).\n"]
    for script in sorted((docs / "gallery").glob("*.py")):
        code, name = script.read_text(), script.stem
        spoken = [f"[{_title(text)}]({page})" for page, text in texts.items() if f"images/{name}.png)" in text]
        said = (ast.get_docstring(ast.parse(code)) or "").split("\n\n")[0]
        parts += [
            f"## {_heading(name)}\n",
            f"{said}{' See ' + ' and '.join(spoken) + '.' if spoken else ''}\n",
            f"![{name}](images/{name}.png){{ loading=lazy }}\n",
            f'??? abstract "docs/gallery/{script.name}"\n\n    ``` python\n{_indented(code)}\n    ```\n',
        ]
    return "\n".join(parts)


def _title(text: str) -> str:
    return text.partition("\n")[0].removeprefix("# ").partition(":")[0]


def _heading(name: str) -> str:
    first, *rest = (word.upper() if word in ACRONYMS else word for word in name.split("_"))
    return " ".join([first[0].upper() + first[1:], *rest])


def _indented(code: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in code.rstrip().splitlines())
