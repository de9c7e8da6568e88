"""Build pde_nb. Everything that pyproject.toml calls dynamic is read from settings.ini."""

import re
from configparser import ConfigParser
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
STATUS = {
    "1": "1 - Planning",
    "2": "2 - Pre-Alpha",
    "3": "3 - Alpha",
    "4": "4 - Beta",
    "5": "5 - Production/Stable",
}
PYTHONS = ("3.10", "3.11", "3.12", "3.13")


def settings():
    parser = ConfigParser(delimiters=["="])
    if not parser.read(ROOT / "settings.ini", encoding="utf-8"):
        raise SystemExit(
            f"settings.ini is missing from {ROOT}: build from a complete checkout or source archive"
        )
    return parser["DEFAULT"]


def extras(cfg):
    suffix = "_requirements"
    return {key[: -len(suffix)]: value.split() for key, value in cfg.items() if key.endswith(suffix)}


LINKS = re.compile(
    r"^```.*?^```|(?P<tick>`+)(?!`).*?(?<!`)(?P=tick)(?!`)"  # code, which stays as it is
    r"|(?P<mark>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)",
    re.DOTALL | re.MULTILINE,
)


def absolute_links(markdown, repository, version):
    """Markdown that can be read anywhere: relative links lead to the files of this version's tag."""

    def change(match):
        target = match["target"]
        if target is None or re.match(r"[a-z][a-z0-9+.-]*:|//|#", target, re.IGNORECASE):
            return match[0]
        kind = "raw" if match["mark"] else "blob"
        return f"{match['mark']}[{match['text']}]({repository}/{kind}/v{version}/{target})"

    return LINKS.sub(change, markdown)


def long_description(cfg):
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8") if readme.exists() else ""
    return absolute_links(text, cfg["git_url"], cfg["version"])


class WithoutIndex(build_py):
    """What nbdev_export writes for itself, `_modidx.py`, is not installed."""

    def find_package_modules(self, package, package_dir):
        return [
            found for found in super().find_package_modules(package, package_dir) if found[1] != "_modidx"
        ]


cfg = settings()
setup(
    cmdclass={"build_py": WithoutIndex},
    name=cfg["lib_name"],
    version=cfg["version"],
    description=cfg["description"],
    long_description=long_description(cfg),
    long_description_content_type="text/markdown",
    keywords=cfg["keywords"].split(),
    author=cfg["author"],
    license=cfg["license"],
    license_files=["LICENSE"],
    url=cfg["git_url"],
    project_urls={
        "Documentation": cfg["doc_host"] + cfg["doc_baseurl"] + "/",
        "Source": cfg["git_url"],
        "Changes": f"{cfg['git_url']}/blob/{cfg['branch']}/CHANGELOG.md",
    },
    packages=find_packages(include=[cfg["lib_path"], cfg["lib_path"] + ".*"]),
    include_package_data=True,
    package_data={cfg["lib_path"]: ["py.typed", "*.pyi", "report/templates/*"]},
    python_requires=">=" + cfg["min_python"],
    install_requires=cfg["requirements"].split(),
    extras_require=extras(cfg),
    entry_points={"console_scripts": cfg["console_scripts"].split()},
    classifiers=[
        f"Development Status :: {STATUS[cfg['status']]}",
        f"Intended Audience :: {cfg['audience']}",
        f"Natural Language :: {cfg['language']}",
        *(f"Programming Language :: Python :: {version}" for version in PYTHONS),
    ],
    zip_safe=False,
)
