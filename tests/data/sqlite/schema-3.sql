-- A store as schema 3 kept it. Never edited: a store like this has to open for ever.
BEGIN TRANSACTION;
CREATE TABLE ax_meta (
    name TEXT NOT NULL PRIMARY KEY,
    value NOT NULL
) WITHOUT ROWID;
INSERT INTO ax_meta VALUES('count_repairs',0);
INSERT INTO ax_meta VALUES('empty_commits',0);
INSERT INTO ax_meta VALUES('next_id',9);
INSERT INTO ax_meta VALUES('schema_version',3);
INSERT INTO ax_meta VALUES('store_id','00112233445566778899aabbccddeeff');
CREATE TABLE ax_type (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    paused INTEGER NOT NULL
);
INSERT INTO ax_type VALUES(1,'close-order',0);
INSERT INTO ax_type VALUES(2,'réport',1);
CREATE TABLE ax_task (
    id INTEGER PRIMARY KEY,
    lane INTEGER NOT NULL,
    state INTEGER NOT NULL,
    gate INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    order_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    node INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    interruptions INTEGER NOT NULL,
    snoozes INTEGER NOT NULL,
    unclean_ends INTEGER NOT NULL,
    lonely_deaths INTEGER NOT NULL,
    created INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    started INTEGER,
    first_started INTEGER,
    finished INTEGER,
    deadline INTEGER,
    scheduled_at INTEGER,
    waits_for INTEGER,
    key TEXT,
    former_key TEXT,
    route_key TEXT,
    schedule TEXT,
    retry TEXT,
    tags BLOB,
    last_error TEXT,
    result BLOB,
    payload BLOB
);
INSERT INTO ax_task VALUES(1,5,1,0,0,1767225600000,1767225600000,1,0,0,0,0,0,0,0,0,1767225600000,1767225600000,NULL,NULL,NULL,NULL,NULL,NULL,'close-42',NULL,NULL,NULL,'exponential(1min).attempts(5)',X'62756c6b0074656e616e742d37',NULL,NULL,X'7b226f726465725f6964223a34327d');
INSERT INTO ax_task VALUES(2,6,1,0,0,1767225600000,1767225600000,1,0,0,0,0,0,0,0,0,1767225600000,1767225600000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'customer-7',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO ax_task VALUES(3,6,1,1,4,1767225600000,1767225600000,1,0,0,0,0,0,0,0,0,1767225600000,1767225600000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'customer-7',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO ax_task VALUES(4,6,5,0,0,1767225660000,1767225600000,3,2,-81985529216486896,1,1,0,0,0,0,1767225600000,1767225600009,1767225600000,1767225600000,NULL,1767229200000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'timed out',NULL,NULL);
INSERT INTO ax_task VALUES(5,10,1,0,0,1767225600000,1767225600000,1,0,0,0,0,0,0,0,0,1767225600000,1767225600000,NULL,NULL,NULL,NULL,1767225600000,NULL,NULL,NULL,NULL,'nightly',NULL,NULL,NULL,NULL,NULL);
INSERT INTO ax_task VALUES(6,6,4,0,0,1767225600000,1767225600000,4,2,-81985529216486896,1,0,0,0,0,0,1767225600000,1767225600020,1767225600005,1767225600005,1767225600020,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'7b226f6b223a747275657d',NULL);
INSERT INTO ax_task VALUES(7,6,3,0,1,1767225600000,1767225600000,3,2,-81985529216486896,1,0,0,0,0,0,1767225600000,1767225600006,1767225600006,1767225600006,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO ax_task VALUES(8,6,6,0,8,1767225600000,1767225600000,3,2,-81985529216486896,1,1,0,0,0,0,1767225600000,1767225600030,1767225600000,1767225600000,1767225600030,NULL,NULL,NULL,NULL,'report-8',NULL,NULL,NULL,NULL,'refused',NULL,NULL);
CREATE TABLE ax_attempt (
    task INTEGER NOT NULL,
    number INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    node INTEGER NOT NULL,
    started INTEGER,
    ended INTEGER NOT NULL,
    outcome INTEGER NOT NULL,
    error TEXT,
    log BLOB,
    PRIMARY KEY (task, number)
) WITHOUT ROWID;
INSERT INTO ax_attempt VALUES(4,1,2,-81985529216486896,1767225600000,1767225600009,1,'timed out',X'6c696e6520310a6c696e652032');
INSERT INTO ax_attempt VALUES(8,1,2,-81985529216486896,1767225600000,1767225600030,2,'refused',NULL);
CREATE TABLE ax_schedule (
    name TEXT NOT NULL PRIMARY KEY,
    spec TEXT NOT NULL,
    type INTEGER NOT NULL,
    payload BLOB,
    next INTEGER,
    last_nominal INTEGER,
    last_task INTEGER NOT NULL,
    version INTEGER NOT NULL,
    fired INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    last_skip TEXT,
    created INTEGER NOT NULL,
    terms TEXT,
    paused INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO ax_schedule VALUES('nightly','cron 0 0 3 * * * Asia/Shanghai',2,NULL,1767312000000,1767225600000,5,1,1,2,'it was paused',1767225600000,'overlap allow',1);
CREATE TABLE ax_former_key (
    key TEXT NOT NULL,
    task INTEGER NOT NULL,
    PRIMARY KEY (key, task)
) WITHOUT ROWID;
INSERT INTO ax_former_key VALUES('report-8',8);
CREATE TABLE ax_step (
    task INTEGER NOT NULL,
    name TEXT NOT NULL,
    value BLOB,
    PRIMARY KEY (task, name)
) WITHOUT ROWID;
INSERT INTO ax_step VALUES(4,'charge',X'22726563656970742d3722');
CREATE TABLE ax_count (
    lane INTEGER NOT NULL,
    state INTEGER NOT NULL,
    tasks INTEGER NOT NULL,
    PRIMARY KEY (lane, state)
) WITHOUT ROWID;
INSERT INTO ax_count VALUES(5,1,1);
INSERT INTO ax_count VALUES(6,1,3);
INSERT INTO ax_count VALUES(6,4,1);
INSERT INTO ax_count VALUES(6,5,1);
INSERT INTO ax_count VALUES(6,6,1);
INSERT INTO ax_count VALUES(10,1,1);
CREATE INDEX ax_schedule_latest ON ax_schedule (last_task);
CREATE TABLE ax_limit (
    number INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    name TEXT NOT NULL,
    capacity INTEGER NOT NULL,
    used INTEGER NOT NULL,
    rate_count INTEGER NOT NULL,
    rate_period INTEGER NOT NULL,
    rate_burst INTEGER NOT NULL,
    rate_at INTEGER NOT NULL,
    rate_last INTEGER NOT NULL,
    rate_taken INTEGER NOT NULL,
    UNIQUE (kind, name)
);
CREATE TABLE ax_need (
    type INTEGER NOT NULL,
    limit_number INTEGER NOT NULL,
    amount INTEGER NOT NULL,
    PRIMARY KEY (type, limit_number)
) WITHOUT ROWID;
CREATE INDEX ax_need_limit ON ax_need (limit_number);
CREATE TABLE ax_hold (
    task INTEGER NOT NULL,
    limit_number INTEGER NOT NULL,
    amount INTEGER NOT NULL,
    token INTEGER NOT NULL,
    PRIMARY KEY (task, limit_number)
) WITHOUT ROWID;
CREATE INDEX ax_hold_limit ON ax_hold (limit_number);
CREATE TABLE ax_line (
    number INTEGER PRIMARY KEY,
    lane INTEGER NOT NULL,
    tags BLOB NOT NULL,
    limit_number INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    first INTEGER NOT NULL,
    UNIQUE (lane, tags)
);
CREATE INDEX ax_line_head ON ax_line (limit_number, lane, run_at, first);
CREATE TABLE ax_workflow (
    id INTEGER PRIMARY KEY,
    head INTEGER NOT NULL,
    name TEXT NOT NULL,
    paused INTEGER NOT NULL,
    stopping INTEGER NOT NULL,
    waiting INTEGER NOT NULL,
    ready INTEGER NOT NULL,
    succeeded INTEGER NOT NULL,
    dead INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    upstream_failed INTEGER NOT NULL,
    started INTEGER,
    last_ended INTEGER NOT NULL
);
CREATE TABLE ax_member (
    task INTEGER PRIMARY KEY,
    workflow INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    rule INTEGER NOT NULL,
    total INTEGER NOT NULL,
    succeeded INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    upstream_failed INTEGER NOT NULL,
    added_by INTEGER NOT NULL,
    dropped INTEGER NOT NULL,
    name TEXT NOT NULL
);
CREATE UNIQUE INDEX ax_member_name ON ax_member (workflow, name, generation);
CREATE INDEX ax_member_added ON ax_member (added_by)
    WHERE added_by > 0;
CREATE TABLE ax_edge (
    parent INTEGER NOT NULL,
    child INTEGER NOT NULL,
    PRIMARY KEY (parent, child)
) WITHOUT ROWID;
CREATE INDEX ax_edge_child ON ax_edge (child, parent);
CREATE TABLE ax_await (
    target TEXT NOT NULL,
    task INTEGER NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (target, task)
) WITHOUT ROWID;
CREATE INDEX ax_await_task ON ax_await (task);
INSERT INTO ax_limit VALUES(1,2,'tenant-7',1,0,100,60000,100,1767225600600000,1767225600000000,1);
CREATE TABLE ax_past (
    task INTEGER PRIMARY KEY,
    past INTEGER NOT NULL
);
CREATE INDEX ax_past_awaited ON ax_past (past)
    WHERE past > 0;
CREATE TABLE ax_backfill (
    number INTEGER PRIMARY KEY,
    schedule TEXT NOT NULL,
    first INTEGER NOT NULL,
    until INTEGER NOT NULL,
    next INTEGER,
    priority INTEGER NOT NULL,
    at_once INTEGER NOT NULL,
    planned INTEGER NOT NULL,
    made INTEGER NOT NULL,
    existed INTEGER NOT NULL,
    unfinished INTEGER NOT NULL,
    version INTEGER NOT NULL,
    created INTEGER NOT NULL
);
CREATE TABLE ax_backfilled (
    backfill INTEGER NOT NULL,
    task INTEGER NOT NULL,
    PRIMARY KEY (backfill, task)
) WITHOUT ROWID;
CREATE TABLE ax_skip (
    schedule TEXT NOT NULL,
    number INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    recorded INTEGER NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (schedule, number)
) WITHOUT ROWID;
INSERT INTO ax_skip VALUES('nightly',4,1767052800000,1767139200000,2,1767225600000,'it was paused');
CREATE TABLE ax_skip_count (
    schedule TEXT NOT NULL,
    reason TEXT NOT NULL,
    skipped INTEGER NOT NULL,
    PRIMARY KEY (schedule, reason)
) WITHOUT ROWID;
INSERT INTO ax_skip_count VALUES('nightly','it was paused',2);
CREATE INDEX ax_task_due ON ax_task (lane, run_at)
    WHERE state IN (1,5) AND gate = 0;
CREATE INDEX ax_task_state ON ax_task (state, lane)
    WHERE state NOT IN (1,5);
CREATE INDEX ax_task_apart ON ax_task (lane, state, (gate <> 0), run_at)
    WHERE state IN (1,5) AND (state = 5 OR gate <> 0);
CREATE UNIQUE INDEX ax_task_key ON ax_task (key)
    WHERE key IS NOT NULL;
CREATE UNIQUE INDEX ax_task_occurrence ON ax_task (schedule, scheduled_at)
    WHERE schedule IS NOT NULL AND scheduled_at IS NOT NULL;
CREATE UNIQUE INDEX ax_task_head ON ax_task (route_key)
    WHERE route_key IS NOT NULL AND state BETWEEN 1 AND 5 AND state <> 4 AND (gate & 1) = 0;
CREATE INDEX ax_task_route ON ax_task (route_key, order_at)
    WHERE route_key IS NOT NULL AND state BETWEEN 1 AND 5 AND state <> 4 AND (gate & 4) = 0;
CREATE INDEX ax_task_deadline ON ax_task (deadline)
    WHERE deadline IS NOT NULL AND (state < 2 OR state = 5);
CREATE INDEX ax_task_waiting ON ax_task (waits_for, run_at)
    WHERE waits_for IS NOT NULL;
CREATE INDEX ax_task_aside ON ax_task (schedule, scheduled_at)
    WHERE schedule IS NOT NULL AND (gate & 4) <> 0;
CREATE TRIGGER ax_task_deleted AFTER DELETE ON ax_task WHEN old.former_key IS NOT NULL
BEGIN
    DELETE FROM ax_former_key WHERE key = old.former_key AND task = old.id;
END;
COMMIT;
