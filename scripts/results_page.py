"""What docs/results.md is made of: a part that ./dev results writes, one that is written by hand, and one that
./dev bench writes. Each keeps the others."""

import results_tables

NOTES_BEGIN = "<!-- Written by hand from here on; `./dev results` keeps it. -->"
NOTES_END = "<!-- End of what is written by hand. -->"


def extract_notes(document):
    """The part between the marks, or an empty one. ValueError if a mark is missing or stands twice: then what is
    written by hand cannot be told from what is not."""
    if document is None:
        return "\n\n"
    if document.count(NOTES_BEGIN) != 1 or document.count(NOTES_END) != 1:
        raise ValueError("the marks around the part that is written by hand are not there once each")
    begin = document.index(NOTES_BEGIN) + len(NOTES_BEGIN)
    end = document.index(NOTES_END)
    if end < begin:
        raise ValueError("the marks around the part that is written by hand are in the wrong order")
    return document[begin:end]


SPEED_BEGIN = "<!-- Written by `./dev bench` from here on. -->"


def extract_speed(document):
    """What ./dev bench wrote, with its mark, or nothing."""
    return document[document.index(SPEED_BEGIN) :] if document and SPEED_BEGIN in document else ""


def replace_speed(document, speed):
    """The document with another such part."""
    kept = document[: document.index(SPEED_BEGIN)] if SPEED_BEGIN in document else document.rstrip("\n") + "\n\n"
    return kept + SPEED_BEGIN + "\n\n" + speed.strip("\n") + "\n"


def render_document(about, tables, notes, speed=""):
    """The whole page. `about` is a list of paragraphs."""
    parts = ["# Results"] + about
    parts += ["## Summary", results_tables.render_summary(tables), NOTES_BEGIN + notes + NOTES_END]
    parts += [results_tables.render_table(table) for table in tables]
    if speed:
        parts.append(speed.rstrip("\n"))
    return "\n\n".join(parts) + "\n"
