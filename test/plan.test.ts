import { afterAll, expect, test, vi } from 'vitest';
import type { FollowerReads } from '../src/features/following/service/tables.ts';
import type { ActivationFilter } from '../src/features/leases/service/tables.ts';
import type { Transaction } from '../src/service/tables.ts';
import { prepareList } from '../src/store/sql.ts';
import type * as Statements from '../src/store/sqlite/statements.ts';
import { createTestStore, type TestStore } from './support/builders/store-builders.ts';

const made = new Set<string>();

// Other files of this worker have loaded the tables before, and others will after.
vi.resetModules();
afterAll(() => vi.resetModules());
/** They are prepared when they are first used, so it is noted which are made. */
vi.doMock('../src/store/sqlite/statements.ts', async (importOriginal) => {
  const original = await importOriginal<typeof Statements>();
  const sqlOn: typeof Statements.sqlOn = (database) => {
    const sql = original.sqlOn(database);
    const noted = <Make extends (text: string, ...rest: never[]) => unknown>(make: Make): Make =>
      ((text: string, ...rest: never[]) => {
        made.add(text.replaceAll('latchkey.', ''));
        return make(text, ...rest);
      }) as Make;
    const [all, count] = [noted(sql.all), noted(sql.count)];
    return {
      ...sql,
      all,
      count,
      get: noted(sql.get),
      value: noted(sql.value),
      column: noted(sql.column),
      exists: noted(sql.exists),
      run: noted(sql.run),
      insert: noted(sql.insert),
      changes: noted(sql.changes),
      list: (parts, from) => prepareList(parts, (text) => all(text, from), count),
    };
  };
  return { ...original, sqlOn };
});
const { prepareTransaction } = await import('../src/store/sqlite/connection.ts');
const { sqliteText } = await import('../src/store/sqlite/statements.ts');
vi.doUnmock('../src/store/sqlite/statements.ts');

/** Every statement that a transaction makes, the reader's among them, and those of lists for each filter. */
function statementsOf(store: TestStore): string[] {
  made.clear();
  listAll(prepareTransaction(store.writing.database));
  return [...made];
}

const page = { limit: 5, offset: 5 };
const byText = { ...page, cursor: ['a'] };
const byNumber = { ...page, cursor: [1] };
const tenant = { accountId: 'a', productKey: 'p' };

function listAgents(agents: FollowerReads): void {
  agents.list({}, byNumber);
  agents.count({});
}

function listAll(tables: Transaction): void {
  const {
    accounts,
    products,
    collections,
    tokens,
    activations,
    followers,
    coupons,
    mirror,
    redemptions,
    audit,
  } = tables;
  for (const table of [accounts, products, collections, tokens]) {
    for (const filter of [{}, { tenant }]) {
      table.list(filter, byText);
      table.count(filter);
    }
  }
  products.list({ archived: false }, byText);
  listAgents(followers);
  const ofActivations: ActivationFilter[] = [
    {},
    { licenseKey: 'k' },
    { productKey: 'p' },
    { seatAt: 1 },
    { tenant },
  ];
  for (const filter of ofActivations) {
    activations.list(filter, byText);
    activations.count(filter);
  }
  const ofCoupons = [{}, { code: 'c' }, { productKey: 'p' }, { state: { is: 'active', at: 1 } }] as const;
  for (const filter of ofCoupons) {
    coupons.list('a', byNumber, filter);
    coupons.count('a', filter);
    mirror.list(byNumber, filter);
    mirror.count(filter);
  }
  redemptions.listOf('a', 1, byNumber);
  const ofAudit = [{}, { since: 1, until: 2 }, { subject: 's', since: 1 }, { actor: 'a' }, { act: 'a' }];
  for (const filter of ofAudit) {
    audit.list(filter, { ...page, cursor: [3, 1] });
    audit.count(filter);
  }
}

function planOf(store: TestStore, text: string): string[] {
  const rows = store.writing.database.prepare(`EXPLAIN QUERY PLAN ${sqliteText(text).sql}`).all();
  return rows.map((row) => String(row['detail']));
}

/** Statements that walk in order and stop at a limit, or that are for people. */
const walks: readonly RegExp[] = [
  /^SELECT seq FROM outbox ORDER BY seq DESC LIMIT 1$/,
  // A row a product.
  /FROM (license|purchase)_count AS license /,
  // The products of an account.
  /IN \(SELECT product_key FROM product AS license /,
  // At the first request of an agent.
  /^SELECT count\(\*\) AS count FROM sync_agent WHERE reach = \$1$/,
  // The length of a list.
  /^SELECT count\(\*\) AS count FROM (account|product|collection|token|sync_agent)( WHERE account_id = \$1)?$/,
  /^SELECT count\(\*\) AS count FROM activation( WHERE seat_until > \$1)?$/,
  /^SELECT count\(\*\) AS count FROM mirrored_coupon( WHERE (product_key|\$1) = |$)/,
  // Once, after the store was restored.
  /^UPDATE activation SET seq = 0, digest = ''$/,
  // All leases of a holder, at its start and for a person.
  / FROM held_lease ORDER BY license_key$/,
  // At a new license key, whose lease takes a request to the issuer.
  /^SELECT count\(\*\) AS count FROM held_lease$/,
  // Once, when the upstream has become another one.
  /^UPDATE license_snapshot SET refresh_at = min\(refresh_at, \$1\)/,
  // Once, at the first start after the machine has started.
  /^UPDATE license_snapshot SET refresh_at = refresh_at \+ \$1/,
  // Once, when the time goes back after a wrong clock.
  /^UPDATE (license_snapshot|mirrored_coupon|follow) SET (confirmed|requested)_at = .*_at - \$1/,
  // Once, after a restore.
  /^UPDATE license(_snapshot)? SET (shown_)?disabled_revision = 0/,
  /^UPDATE license_snapshot SET confirmed_at = CASE followed .* followed = 0\s+WHERE followed = 1 AND \(/s,
  // The operations and licenses of an agent that a search looks at, and the licenses of an authority if it finds many.
  /^SELECT count\(\*\) AS count FROM \(\s*SELECT 1 FROM (outbox|license|license_snapshot) WHERE \(/,
  /^WITH candidate \(found_key\) AS \(SELECT license_key FROM license /,
  /FROM redemption_count WHERE coupon_id > 0 AND count > 0$/,
  /^SELECT -id AS "provisionalId", real_id AS id FROM provisional_coupon /,
  /^UPDATE provisional_coupon SET real_id = NULL /,
];

/** Steps that read nothing besides what the statement is about. */
const bounded: ReadonlySet<string> = new Set([
  'SCAN CONSTANT ROW',
  'SCAN waiting',
  'SCAN products',
  'SCAN outbox_count',
  // A row for each table that counts by itself.
  'SCAN sqlite_sequence',
  // One row, and up to a thousand changes.
  'SCAN state',
  'SCAN scanned',
  'SCAN wanted LEFT-JOIN',
  'SCAN confirmed',
  // As many activations as are kept (domain/agent/activated-key.ts).
  'SCAN activation_attempt USING COVERING INDEX activation_attempt_sent',
  // The moves of one activation, at most three.
  'SCAN items VIRTUAL TABLE INDEX 1:',
  'SCAN preload_count',
  // What a search finds, and up to so many rows of it.
  'SCAN candidate',
  'SCAN license_search VIRTUAL TABLE INDEX 0:M1',
  // One row.
  'SCAN license_search_end',
  'SCAN (subquery-1)',
  'SCAN (subquery-3)',
  // At most 32, and the types of one.
  'SCAN webhook_endpoint',
  'SCAN webhook_endpoint EXISTS',
  'SCAN listed',
  // One for each product, and one for each of its last 400 days.
  'SCAN json_each VIRTUAL TABLE INDEX 1:',
  // Those that change every waiting queue, or every queue that an outage holds up.
  'SCAN outbox USING INDEX outbox_due',
  'SCAN outbox USING INDEX outbox_outage',
  // The changes of coupons that wait, in order.
  'SCAN outbox USING INDEX outbox_coupons',
  // Those that guard what may still be on its way, at a start.
  'SCAN outbox USING INDEX outbox_reconcile',
  // The enables, once, when the upstream has another history.
  'SCAN outbox USING INDEX outbox_seen',
  // The products whose licenses are about to get another grace.
  'SCAN product USING INDEX product_graced',
  // What is held is counted by an index of nothing else.
  'SCAN outbox USING COVERING INDEX outbox_held',
]);

test('no statement but those for people reads a whole table', async () => {
  await using store = createTestStore();
  const statements = statementsOf(store);
  expect(statements.length).toBeGreaterThan(50);
  const scanning = statements.filter((sql) =>
    planOf(store, sql).some((step) => step.startsWith('SCAN') && !bounded.has(step)),
  );
  expect(scanning.filter((sql) => !walks.some((pattern) => pattern.test(sql)))).toEqual([]);
  // One that is not needed lets something in one day.
  expect(walks.filter((pattern) => !scanning.some((sql) => pattern.test(sql)))).toEqual([]);
});

/** The steps of the only statement that has this in it. */
function stepsOf(store: TestStore, part: string): ReadonlySet<string> {
  const found = statementsOf(store).filter((sql) => sql.includes(part));
  expect(found).toHaveLength(1);
  // The SQLite of Node 24 makes a filter in memory besides, of what the subquery has found.
  const steps = planOf(store, found.join()).filter((step) => step !== 'CREATE BLOOM FILTER');
  return new Set(steps.map((step) => step.replace(/SUBQUERY \d+/, 'SUBQUERY')));
}

const merge = ['LIST SUBQUERY', 'MERGE (UNION ALL)', 'LEFT', 'RIGHT'];
const rowBySeq = 'SEARCH outbox USING INTEGER PRIMARY KEY (rowid=?)';

test.for([
  ['FROM account WHERE (', 'SEARCH account USING PRIMARY KEY (account_id>?)'],
  ['FROM product WHERE (product', 'SEARCH product USING PRIMARY KEY (product_key>?)'],
  ['FROM collection WHERE (', 'SEARCH collection USING PRIMARY KEY (collection_id>?)'],
  ['FROM token WHERE (', 'SEARCH token USING PRIMARY KEY (token_id>?)'],
  ['FROM activation WHERE (', 'SEARCH activation USING PRIMARY KEY (activation_id>?)'],
  ['FROM sync_agent WHERE (', 'SEARCH sync_agent USING INTEGER PRIMARY KEY (rowid>?)'],
  [
    'FROM coupon WHERE account_id = $1 AND (id',
    'SEARCH coupon USING INDEX coupon_account (account_id=? AND rowid>?)',
  ],
  ['FROM mirrored_coupon WHERE (', 'SEARCH mirrored_coupon USING INTEGER PRIMARY KEY (rowid>?)'],
  [
    'FROM license WHERE product_key = $1',
    'SEARCH license USING INDEX license_product (product_key=? AND license_key>?)',
  ],
  ['FROM license WHERE $6 IS NULL', 'SEARCH license USING PRIMARY KEY (license_key>?)'],
  [
    'WHERE purchase.created_at >= $5',
    'SEARCH purchase USING INDEX purchase_date (created_at>? AND (created_at,purchase_id)<(?,?))',
  ],
  ['FROM audit_event WHERE at >= $1 AND (', 'SEARCH audit_event USING INDEX audit_event_at (at>? AND at<?)'],
  [
    'FROM audit_event WHERE at >= $1 AND subject = $2',
    'SEARCH audit_event USING INDEX audit_event_subject (subject=? AND at>? AND at<?)',
  ],
  [
    'FROM license_history\n     WHERE license_key = $1 AND at',
    'SEARCH license_history USING PRIMARY KEY (license_key=? AND number>? AND number<?)',
  ],
] as const)('a page of a list (%s) is searched by its cursor, however deep it is', async ([part, step]) => {
  await using store = createTestStore();
  const found = statementsOf(store).filter(
    (sql) => sql.includes(part) && /LIMIT \$\d+ OFFSET \$\d+$/.test(sql),
  );
  expect(found).toHaveLength(1);
  expect(planOf(store, found.join())[0]).toBe(step);
});

test('an export of one product, or of an account with few licenses, looks at no license of others', async () => {
  await using store = createTestStore();
  const exports = statementsOf(store).filter((sql) =>
    /WHERE license_key > \$4 AND product_key (= \$1|IN)/.test(sql),
  );
  const own = 'SEARCH license USING INDEX license_product (product_key=? AND license_key>?)';
  expect(exports.map((sql) => planOf(store, sql).includes(own))).toEqual([true, true]);
});

test('the open operations are walked in their order, and of those before a page nothing but an index is read', async () => {
  await using store = createTestStore();
  expect(stepsOf(store, "state = 'dead' AND seq > $1 ORDER BY seq LIMIT")).toEqual(
    new Set([...merge, rowBySeq, 'SEARCH outbox USING COVERING INDEX outbox_state (state=? AND rowid>?)']),
  );
});

test('what is open of a key that has a million changes is walked in their order, and read a page at a time', async () => {
  await using store = createTestStore();
  expect(stepsOf(store, '($2 IS NULL OR state = $2) AND seq > $3 ORDER BY seq LIMIT')).toEqual(
    new Set([
      ...merge,
      rowBySeq,
      'SEARCH outbox USING INDEX outbox_queue (subject=? AND queue=? AND rowid>?)',
      'SEARCH outbox USING INDEX outbox_dead (subject=? AND rowid>?)',
    ]),
  );
});

test('only what one key shows, the products of a collection, the coupons with one code, what one buyer or key bought, what is sold and exported of few products, the devices of one key, what a search finds, what followers get, what the overview counts, and what is in doubt elsewhere, is sorted after it was read', async () => {
  await using store = createTestStore();
  const statements = statementsOf(store).filter((sql) => !sql.startsWith('WITH candidate '));
  const sorting = statements.filter((sql) => planOf(store, sql).some((step) => step.includes('TEMP B-TREE')));
  expect(sorting.toSorted((one, other) => one.length - other.length)).toEqual([
    // The active devices of one key, in their order.
    expect.stringContaining("license_key = $1 AND state = 'active' ORDER BY activation_id"),
    // Purchases and activations of a day or a month, counted by their steps.
    expect.stringContaining('count FROM purchase'),
    expect.stringContaining('count FROM activation'),
    expect.stringContaining('count FROM purchase'),
    expect.stringContaining('FROM collection WHERE collection_id = $1'),
    expect.stringContaining('FROM collection WHERE (collection_id)'),
    expect.stringContaining('FROM collection WHERE account_id = $1'),
    expect.stringContaining('DELETE FROM activation'),
    expect.stringContaining('FROM mirrored_coupon WHERE folded_code = $1'),
    expect.stringContaining('FROM activation WHERE license_key = $1 ORDER BY renewed_at'),
    expect.stringContaining('FROM activation WHERE license_key = $1 AND (activation_id)'),
    expect.stringContaining('upstream <> $1'),
    expect.stringContaining('FROM license WHERE license_key > $4 AND product_key IN'),
    expect.stringContaining('FROM license CROSS JOIN purchase'),
    expect.stringContaining('FROM license WHERE product_key IN'),
    expect.stringContaining('WHERE lower(buyer_email) = lower($2)'),
    expect.stringContaining('WHERE purchase.license_key = $1'),
    expect.stringContaining('FROM license CROSS JOIN purchase'),
    expect.stringContaining('UNION ALL'),
    expect.stringContaining('AS wantedKey'),
    expect.stringContaining('AS wantedKey'),
  ]);
});

test('the operations that return to the outbox after a restore of the upstream are walked in their order', async () => {
  await using store = createTestStore();
  expect(stepsOf(store, "+state IN ('delivered', 'inferred')")).toEqual(
    new Set(['SEARCH outbox USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)']),
  );
});
