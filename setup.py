"""Build pde_nb. Everything that pyproject.toml calls dynamic is read from settings.ini."""

from configparser import ConfigParser
from pathlib import Path

from setuptools import find_packages, setup

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


def long_description():
    readme = ROOT / "README.md"
    return readme.read_text(encoding="utf-8") if readme.exists() else ""


cfg = settings()
setup(
    name=cfg["lib_name"],
    version=cfg["version"],
    description=cfg["description"],
    long_description=long_description(),
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
    package_data={cfg["lib_path"]: ["py.typed", "*.pyi"]},
    python_requires=">=" + cfg["min_python"],
    install_requires=cfg["requirements"].split(),
    extras_require=extras(cfg),
    entry_points={
        "console_scripts": cfg["console_scripts"].split(),
        "nbdev": [f"{cfg['lib_name']}={cfg['lib_path']}._modidx:d"],
    },
    classifiers=[
        f"Development Status :: {STATUS[cfg['status']]}",
        f"Intended Audience :: {cfg['audience']}",
        f"Natural Language :: {cfg['language']}",
        *(f"Programming Language :: Python :: {version}" for version in PYTHONS),
    ],
    zip_safe=False,
)
