"""What is installed, and what is somebody's own."""

import json
import sysconfig

import pytest
import torch

from shapetrace.installed import installed_package, is_installed


@pytest.mark.parametrize(
    ("file", "package"),
    [
        ("/home/me/project/net.py", ""),
        ("/usr/lib/python3/dist-packages/numpy/core/x.py", "numpy"),
        ("/v/lib/python3.11/site-packages/einops.py", "einops"),
        ("/v/site-packages/outer/site-packages/inner/x.py", "inner"),
        ("C:\\v\\Lib\\site-packages\\timm\\layers\\x.py", "timm"),
        ("site-packages/p/a.py", "p"),
        ("/v/site-packages", ""),
        ("/home/me/my-site-packages/net.py", ""),
        ("/home/me/site-packages.py", ""),
    ],
)
def test_the_package_is_the_folder_below_the_installers(file, package):
    assert installed_package(file) == package
    assert is_installed(file) == bool(package)


def test_of_this_interpreter():
    assert installed_package(torch.nn.__file__) == "torch"
    assert not is_installed(json.__file__)
    assert is_installed(sysconfig.get_paths()["purelib"] + "/anything/x.py")
