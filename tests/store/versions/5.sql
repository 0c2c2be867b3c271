PRAGMA application_id=1634628197;
PRAGMA user_version=5;
BEGIN TRANSACTION;
CREATE TABLE accounts (
    stream INTEGER NOT NULL,
    outcome TEXT NOT NULL,           -- 'received', 'published', 'suppressed/overload', ...
    n INTEGER NOT NULL,
    seal INTEGER,
    PRIMARY KEY (stream, outcome)
) WITHOUT ROWID;
INSERT INTO "accounts" VALUES(1,'published',2,713741472);
INSERT INTO "accounts" VALUES(1,'received',3,613103003);
INSERT INTO "accounts" VALUES(1,'suppressed/no_class',1,1006711837);
CREATE TABLE classes (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    stream INTEGER NOT NULL,
    window INTEGER NOT NULL,
    topic TEXT NOT NULL,
    payload BLOB NOT NULL,
    n_parts INTEGER NOT NULL,
    published_at REAL,
    seal INTEGER
);
INSERT INTO "classes" VALUES(1,1,7,'anonymized/fleet',X'6F6E65',2,1001.0,2749716623);
INSERT INTO "classes" VALUES(2,1,7,'anonymized/fleet',X'74776F',2,NULL,2107217368);
CREATE TABLE offsets (
    topic TEXT NOT NULL,
    partition INTEGER NOT NULL,
    next INTEGER NOT NULL,           -- the first message that is not in this file yet
    seal INTEGER,
    PRIMARY KEY (topic, partition)
) WITHOUT ROWID;
CREATE TABLE "parts 1 9" (parts BLOB NOT NULL, replaced BLOB NOT NULL, seal INTEGER NOT NULL);
INSERT INTO "parts 1 9" VALUES(X'91960309C4106361722D6B65792D31362D627974657300CB3FF8000000000000C4087261772D30303033',X'90',3859914149);
CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL, seal INTEGER) WITHOUT ROWID;
INSERT INTO "secrets" VALUES('histories fleet',X'68',2579023092);
INSERT INTO "secrets" VALUES('key',X'355A1D00442B2BBCA7724BA332AAF6BF61FD77FFD3657C40D327756EA52B4291',646708807);
INSERT INTO "secrets" VALUES('place topic 0',X'3137',22317839);
INSERT INTO "secrets" VALUES('schema',X'31313032373236313432',454306544);
INSERT INTO "secrets" VALUES('session',X'73657373696F6E',1044719875);
CREATE TABLE streams (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    shape TEXT NOT NULL,
    newest BLOB NOT NULL,            -- newest event time of each source, float64; in a closed
                                     -- window, only the end of that window
    closed_before INTEGER,           -- windows before this one take nothing more
    next_message INTEGER NOT NULL,
    seal INTEGER                     -- checksum of the row, in every table
);
INSERT INTO "streams" VALUES(1,'fleet','a',X'0000000000000840000000000000F0FF',8,3,3048345493);
CREATE TABLE vehicles (
    stream INTEGER NOT NULL,
    vehicle BLOB NOT NULL,
    seen INTEGER NOT NULL,           -- last window that it was published in
    state BLOB NOT NULL,
    seal INTEGER,
    PRIMARY KEY (stream, vehicle)
) WITHOUT ROWID;
INSERT INTO "vehicles" VALUES(1,X'6361722D6B65792D31362D6279746573',7,X'63636363636363636363636363636363636363636363636363636363636363636363636363636363',1782207053);
INSERT INTO "vehicles" VALUES(1,X'76616E2D6B65792D31362D6279746573',7,X'76767676767676767676767676767676767676767676767676767676767676767676767676767676',2615909653);
CREATE TABLE windows (
    stream INTEGER NOT NULL,
    window INTEGER NOT NULL,
    starts REAL NOT NULL,
    ends REAL NOT NULL,
    closed_at REAL NOT NULL,
    summary TEXT NOT NULL,           -- JSON: sizes and measures
    seal INTEGER,
    PRIMARY KEY (stream, window)
) WITHOUT ROWID;
INSERT INTO "windows" VALUES(1,7,70.0,80.0,1000.0,'{"records": 3, "published": 3, "classes": 2, "promised_k": 2}',698623474);
CREATE INDEX waiting ON classes (number) WHERE published_at IS NULL;
CREATE INDEX of_window ON classes (stream, window);
CREATE INDEX unseen ON vehicles (stream, seen);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('classes',2);
COMMIT;
