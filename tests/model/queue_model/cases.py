# SPDX-License-Identifier: LGPL-2.1-or-later
"""For each rule a case that goes wrong without it; and the cases of the short and the long run."""

from . import directory_items, open_files, sessions

ONE_FILE, ONE_DIRECTORY = (("file 4",),), (("directory 1",),)
A_DIRECTORY_AND_A_FILE = (("directory 1", "file 2"),)

ENDS = sessions.Case(((A_DIRECTORY_AND_A_FILE, True),), collectors=1, passes=2, deaths=1, repeats=1)
STAYS = sessions.Case(
    (((*A_DIRECTORY_AND_A_FILE, ("file 3",)), False),), collectors=1, passes=2, deaths=1, repeats=1
)
TWO_COLLECTORS = sessions.Case(((ONE_FILE, True),), collectors=2, passes=1, deaths=2, repeats=0)
TWO_THREADS = directory_items.Case((1, 1), rounds=2)
A_CHAIN = directory_items.Case((2, 1), rounds=3)
POLLS = A_CHAIN._replace(collects=False)
OPEN = open_files.Case(clients=2, opens=1, lost_watches=1, collectors=1, passes=1)

NEEDED = [
    ("READ_AFTER_ASKING", ENDS),
    ("LOG_BEFORE_ACTING", ENDS),
    ("RECORD_OUTLIVES_SESSION", ENDS),
    ("FENCE_BEFORE_MARK", TWO_COLLECTORS),
    ("ENDED_IS_LAST", ENDS),
    ("OPERATION_HOLDS_BACK", TWO_THREADS),
    ("NEXT_NUMBER", TWO_THREADS),
    ("DROP_ALL", POLLS),
    ("HELD_WHILE_RELIED_ON", TWO_THREADS),
    ("NOTED_AFTER_APPEND", TWO_THREADS),
    ("ALL_ANSWER", OPEN),
    ("ASK_AFTER_MARK", OPEN),
    ("OPENING_COUNTS", OPEN),
]

SHORT = [
    ("queues, to the instance's end", [ENDS, STAYS, TWO_COLLECTORS]),
    ("directory items and liveness polls", [TWO_THREADS]),
    ("open files", [OPEN, OPEN._replace(collectors=2)]),
]
LONG = [
    (
        "queues, two of each",
        [
            sessions.Case(((ONE_DIRECTORY, True),), collectors=2, passes=1, deaths=1, repeats=1),
            sessions.Case(
                ((ONE_FILE, True), (ONE_DIRECTORY, False)), collectors=1, passes=2, deaths=2, repeats=0
            ),
            sessions.Case(
                ((ONE_FILE, True), (ONE_DIRECTORY, False)), collectors=2, passes=1, deaths=1, repeats=0
            ),
        ],
    ),
    ("directory items and liveness polls", [A_CHAIN, POLLS, directory_items.Case((1, 1, 1), rounds=2)]),
    ("open files", [OPEN._replace(opens=2, lost_watches=2, passes=2)]),
]

MODELS = {
    sessions.Case: sessions.SessionsModel,
    directory_items.Case: directory_items.DirectoryItemsModel,
    open_files.Case: open_files.OpenFilesModel,
}


def model_of(case):
    return MODELS[type(case)](case)
