"""Runs commands as they are typed, and reads and writes the tables that they take."""

import csv
import json
import re
from pathlib import Path

from typer.testing import CliRunner

from dualt.cli import app


def run(*arguments, code=0):
    """Return the result of a command, which must exit with `code`."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output or result.exception
    return result


def refused(*arguments):
    """Return what a command that is refused says on stderr, in one line without the frame around it."""
    return " ".join(run(*arguments, code=2).stderr.replace("│", " ").split())


def read_rows(path):
    """Return the rows of a table by the names of its columns."""
    with Path(path).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def write_rows(path, rows):
    with Path(path).open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def numbers_of(page):
    """Return what the script of a page reads: names, matrices, and lists of rows, of which each column is a list."""
    return json.loads(re.search(r'id="numbers">(.*?)</script>', page, re.DOTALL).group(1))


def fill_in(path, true):
    """Fill in the column `true` of an audit with the classes of its rows."""
    write_rows(path, [{**row, "true": true[int(row["index"])]} for row in read_rows(path)])
