import pytest

from nsys_triage.ingest.messages import export_failure
from nsys_triage.ingest.version import Version

NSYS = Version((2023, 4, 4, 54))
OLD_NSYS = Version((2022, 4, 2, 1))
SESSION_STATE = (
    '[libprotobuf ERROR x.cc:1] Can\'t parse message of type "QuadDAnalysis.Data.SessionState" because it is '
    "missing required fields: a\nExportation error: /build/ProtobufUtils.cpp(73): Throw in function f\n"
    "Dynamic exception type: boost::wrapexcept<QuadDCommon::ProtobufParseException>"
)

MESSAGES = {
    "newer, told by 2023.4": (
        1,
        "Exportation error: Report was created in Nsight Systems version (2025.5.1.121-255136380782v0), "
        "newer than your current version (2023.4.4.54-234433681190v0).\nPlease update your Nsight Systems",
        "was recorded with nsys 2025.5.1.121, which nsys 2023.4.4.54 cannot read",
    ),
    "newer, told by 2022.4": (
        1,
        "Exportation error: Version number is invalid: 2023@4@4@54-234433681190v0",
        "was recorded with nsys 2023.4.4.54, which nsys 2023.4.4.54 cannot read",
    ),
    "no newer one could hide": (1, SESSION_STATE, "it is damaged"),
    "damaged elsewhere": (1, SESSION_STATE.replace("SessionState", "EventCollectionHeader"), "it is damaged"),
    "damaged signature": (1, "Throw in function VerifySessionStateStreamSignature", "it is damaged"),
    "damaged": (
        1,
        "Exportation error: LZ4 decompression failed.",
        "it is damaged: copy or download it again",
    ),
    "truncated": (
        1,
        "Exportation error: Section Table Reference magic number mismatch.",
        "it is truncated or has been altered",
    ),
    "not readable": (1, "Exportation error: Cannot read from stream.", "it is damaged"),
    "not a report": (1, "Exportation error: Version tag is not found in the stream.", "it is not a report"),
    "a stream": (1, "Exportation error: Invalid version prefix: U3w[END]NVIDIA", "it is not a report"),
    "gone": (1, "Exportation error: File not found: '/home/jo/a.nsys-rep'.", "it is not there any more"),
    "disk full, told": (
        1,
        "Failed to de-initialize insert statement: dbapi.h(38)\n= database or disk is full",
        "no space was left",
    ),
    "disk full, code 0": (
        0,
        "Failed to close database connection: = database or disk is full",
        "--cache-dir",
    ),
    "no folder": (1, "Exportation error: unable to open database file", "--cache-dir"),
    "no locks": (1, "Exportation error: database is locked", "cannot lock files"),
    "out of memory": (-9, "", "was ended by SIGKILL, perhaps because memory ran out"),
    "crash": (-11, "", "was ended by SIGSEGV"),
    "unknown": (
        1,
        "\nExportation error: Something new in /home/jo/secret/x.cpp(7).",
        "it said `Something new in x.cpp(7)`",
    ),
    "nothing": (0, "", "it ended with code 0 and left no complete export"),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_every_message_becomes_one_sentence(case: str) -> None:
    code, stderr, expected = MESSAGES[case]
    sentence = str(export_failure("job.nsys-rep", NSYS, code, stderr))
    assert expected in sentence
    assert sentence.startswith("job.nsys-rep was ")
    assert "\n" not in sentence
    assert "/home/jo" not in sentence
    assert "libprotobuf" not in sentence


def test_endless_message_is_cut() -> None:
    assert len(str(export_failure("job.nsys-rep", NSYS, 1, "x" * 100_000))) < 400


def test_newer_report_whose_header_hides_it() -> None:
    sentence = str(export_failure("job.nsys-rep", OLD_NSYS, 1, SESSION_STATE))
    assert "was recorded with a newer nsys (2023.1 to 2023.3; its header hides which)" in sentence
    assert "nsys 2022.4.2.1 cannot read: install Nsight Systems 2023.3.1 or newer" in sentence
    damaged = SESSION_STATE.replace("SessionState", "EventCollectionHeader")
    assert "it is damaged" in str(export_failure("job.nsys-rep", OLD_NSYS, 1, damaged))
