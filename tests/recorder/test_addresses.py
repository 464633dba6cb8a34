from __future__ import annotations

import subprocess
import sys

import pytest

from uphold.errors import StoreUnavailable
from uphold.recorder.addresses import Address


def test_an_address_is_taken_apart():
    address = Address.parse("mysql://orion:p%40ss@db.example:3307/app?ssl_ca=/etc/ca.pem")
    assert (address.dialect, address.host, address.port) == ("mysql", "db.example", 3307)
    assert (address.user, address.password, address.database) == ("orion", "p@ss", "app")
    assert address.query == (("ssl_ca", "/etc/ca.pem"),)


@pytest.mark.parametrize(
    ("url", "driver"),
    [
        ("mysql://h/n", "mysql+pymysql"),
        ("mariadb://h/n", "mysql+pymysql"),
        ("mysql+mysqldb://h/n", "mysql+pymysql"),
        ("postgres://h/n", "postgresql+psycopg"),
        ("postgresql+psycopg2://h/n", "postgresql+psycopg"),
        ("sqlite:////tmp/x.db", "sqlite"),
    ],
)
def test_each_kind_goes_to_the_driver_we_use(url, driver):
    assert Address.parse(url).engine_url().drivername == driver


def test_the_options_go_to_the_driver_and_mysql_speaks_all_of_unicode():
    url = Address.parse("mysql://u:p@h/n?ssl_ca=x&charset=latin1").engine_url()
    assert dict(url.query) == {"ssl_ca": "x", "charset": "utf8mb4"}
    assert Address.parse("postgresql://h/n?sslmode=require").engine_url().query == {
        "sslmode": "require"
    }


@pytest.mark.parametrize(
    ("url", "path"), [("sqlite:////var/x.db", "/var/x.db"), ("sqlite:///x%20y.db", "x y.db")]
)
def test_a_file_is_named_by_its_path(url, path):
    assert Address.parse(url).database == path


def test_an_address_of_the_newer_internet_keeps_its_brackets():
    address = Address.parse("postgres://u:p@[::1]:5432/name")
    assert (address.host, address.shown) == ("::1", "postgresql://[::1]:5432/name")


@pytest.mark.accepts("S43")
@pytest.mark.parametrize(
    "password",
    ["canary", "can@ry", "can/ary", "c?a@n/a#ry", "can%40ry", ":canary:", "x@y:1/z?ca=n"],
)
def test_what_is_shown_holds_neither_user_nor_password_nor_options(password):
    address = Address.parse(f"mysql://somebody:{password}@host:3306/name?ssl_key=secret")
    assert address.shown == "mysql://host:3306/name"
    assert "ca" not in repr(address)
    assert "secret" not in repr(address)


@pytest.mark.accepts("S43")
@pytest.mark.parametrize(
    "url",
    [
        "canary",
        "oracle://u:canary@h/n",
        "mysql://u:canary@h",
        "mysql://u:canary@h/",
        "mysql://u:canary@h:99999/n",
        "mysql://u:canary@h:x/n",
        "mysql://u:canary@[::1/n",
        "sqlite://canary",
        "sqlite:///:memory:?canary",
        "sqlite:///",
    ],
)
def test_what_cannot_be_read_is_refused_without_repeating_it(url):
    with pytest.raises(StoreUnavailable) as caught:
        Address.parse(url)
    assert caught.value.code == "UPH_STORE_ADDRESS"
    assert caught.value.remedy
    assert "canary" not in str(caught.value)


def test_showing_one_needs_no_toolkit():
    program = (
        "import sys; from uphold.recorder.addresses import Address;"
        "print(Address.parse('mysql://u:p@h/n').shown, 'sqlalchemy' in sys.modules)"
    )
    command = [sys.executable, "-I", "-c", program]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["mysql://h/n", "False"]
