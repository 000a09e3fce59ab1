import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { migrations, takeSteps } from '../../../src/store/sqlite/files/migrations.ts';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Makes the state directory that a program of the first schema left, as one of 2026-11-21 wrote its rows. */
function leave(directory: string, write: (database: DatabaseSync) => void): void {
  mkdirSync(directory, { mode: 0o700 });
  using database = new DatabaseSync(join(directory, 'latchkey.db'));
  database.exec('PRAGMA application_id = 0x4c4b4559; PRAGMA journal_mode = WAL');
  takeSteps(database, 0, migrations.slice(0, 1));
  write(database);
}

type Row = Readonly<Record<string, string | number | null>>;

function insert(database: DatabaseSync, table: string, row: Row): void {
  const columns = Object.keys(row);
  const values = columns.map((column) => `:${column}`).join(', ');
  database.prepare(`INSERT INTO ${table} (${columns.join(', ')}) VALUES (${values})`).run(row);
}

function insertSettings(database: DatabaseSync, settings: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(settings)) insert(database, 'setting', { name, value });
}

const useOf = (licenseKey: string): unknown[] => ['PUT', '/api/v2/license/usage', null, { licenseKey }];

/** The stored answer of a change, which is repeated under the same idempotency key. */
function insertAnswer(
  database: DatabaseSync,
  answer: { credential: string; key: string; asked: unknown[]; value: unknown; at: number },
): void {
  const { asked, value, ...row } = answer;
  const stored = JSON.stringify({ ok: true, value });
  insert(database, 'idempotency', { ...row, fingerprint: sha256(JSON.stringify(asked)), value: stored });
}

/** What an agent of the first schema had in its outbox; each key was seen with three uses. */
export const leftOperations: readonly (Row & { subject: string; state: string })[] = [
  { subject: 'KEY-waiting', state: 'pending' },
  { subject: 'KEY-waiting', state: 'pending' },
  { subject: 'KEY-arrived', state: 'in_flight', base_uses: 3, sent_at: 8, attempts: 1 },
  { subject: 'KEY-lost', state: 'in_flight', base_uses: 3, sent_at: 8, attempts: 1 },
  { subject: 'KEY-doubted', state: 'uncertain', base_uses: 3, attempts: 1, next_at: 9 },
  { subject: 'KEY-doubted', state: 'pending' },
  {
    subject: 'KEY-held',
    state: 'uncertain',
    held: 1,
    base_uses: 3,
    attempts: 1,
    last_error: 'connection reset',
  },
  { subject: 'KEY-refused', state: 'dead', attempts: 1, last_error: 'HTTP 422: Refused' },
  { subject: 'KEY-missing', state: 'dead', last_error: 'the upstream does not know this license key' },
  { subject: 'KEY-ended', state: 'pending', kind: 'disable', lane: 'state' },
  { subject: 'save', state: 'pending', kind: 'create_coupon', lane: 'coupon', product_key: null },
];

const coupon = {
  scope: { type: 'multi' },
  discount: { type: 'percent', percentOff: 3 },
  code: 'SAVE',
  startAt: null,
  endAt: null,
  minimumPurchaseAmount: null,
  usageLimit: null,
  notes: null,
  id: -1,
};

const seen = { uses: 3, enabled: true };

function insertObservation(database: DatabaseSync, subject: string, productKey: string, now: number): void {
  const waiting = leftOperations.filter((left) => left.subject === subject && left.state !== 'dead');
  const isEnded = waiting.some(({ kind }) => kind === 'disable');
  const isGone = subject === 'KEY-missing';
  insert(database, 'observation', {
    license_key: subject,
    product_link: productKey,
    buyer_email: 'buyer@example.com',
    uses: seen.uses,
    enabled: 1,
    created_at: 5,
    local_uses: seen.uses + (isEnded ? 0 : waiting.length),
    local_enabled: isEnded ? 0 : 1,
    local_pending: waiting.length,
    product_key: productKey,
    confirmed_at: now - 60_000,
    boot: 1,
    many_writers: 0,
    missing_since: isGone ? now - 60_000 : null,
    gone: isGone ? 1 : 0,
    lingers_until: null,
    asked_at: now - 60_000,
    refresh_at: now,
  });
}

/** What an operator gave up before the upgrade, under the idempotency key `dropped`, as it was stored. */
const dropped = {
  seq: 99,
  id: 'operation-dropped',
  kind: 'usage',
  subject: 'KEY-dropped',
  productKey: 'RGsF',
  attempts: 1,
  failures: 0,
  nextAt: null,
  outage: false,
  lastError: 'HTTP 422: Refused',
  payload: null,
  createdAt: 5,
  revision: 3,
  progress: { state: 'dropped', finishedAt: 7 },
};

/** An agent with operations in each state that does not end; its use of `KEY-waiting` had the idempotency key `first`. */
export function leaveAgent(directory: string, productKey: string, now: number): void {
  leave(directory, (database) => {
    const marks = { high_water: `${now - 1000}`, steady_mark: `${now - 1000}` };
    insertSettings(database, { role: 'agent', instance: 'agent-1', boot: '1', boot_seq: '0', ...marks });
    const operation = { kind: 'usage', lane: 'counter', product_key: productKey, doubtful: 0, held: 0 };
    const counts = { attempts: 0, failures: 0, outage: 0, created_at: now - 60_000 };
    for (const [index, left] of leftOperations.entries()) {
      const due = left.state === 'pending' ? { next_at: now } : {};
      const payload = left.subject === 'save' ? { payload: JSON.stringify(coupon) } : {};
      const id = `operation-${index}`;
      insert(database, 'outbox', { id, ...operation, ...counts, ...due, ...payload, ...left });
    }
    const keys = new Set(leftOperations.map(({ subject }) => subject));
    keys.delete('save');
    for (const key of keys) insertObservation(database, key, productKey, now);
    insert(database, 'provisional_coupon', { id: 1, real_id: null });
    const mirrored = { id: -1, code: 'SAVE', folded_code: 'save', scope: 'multi', percent_off: 3 };
    insert(database, 'mirrored_coupon', mirrored);
    const license = { licenseKey: 'KEY-waiting', productKey, buyerEmail: 'buyer@example.com', createdAt: 5 };
    const observation = {
      license: { ...license, ...seen },
      local: { uses: 4, enabled: true, pending: 1 },
      productKey,
      confirmedAt: now - 60_000,
      boot: 1,
      manyWriters: false,
      missingSince: null,
      gone: false,
      lingersUntil: null,
      askedAt: now - 60_000,
      refreshAt: now,
    };
    insertAnswer(database, {
      credential: `product:${productKey}`,
      key: 'first',
      asked: useOf('KEY-waiting'),
      value: { observation, operationId: 'operation-0' },
      at: now - 60_000,
    });
    insertAnswer(database, {
      credential: 'token:admin.token',
      key: 'dropped',
      asked: ['POST', '/admin/v1/outbox/operation-dropped/drop', null, null],
      value: { operation: dropped, was: 'dead' },
      at: now - 60_000,
    });
  });
}

/** The credentials of the authority below. */
export const leftSecrets = { apiKey: 'lk_api_left', product: 'lk_prod_left', token: 'lk_tok_left' } as const;

/**
 * An authority that sold `KEY-1`, used five times, and `KEY-2`, which was refunded. Its last use had the idempotency
 * key `last`, and the revocation of `token-0` had `revoked`.
 */
export function leaveAuthority(directory: string, now: number): void {
  leave(directory, (database) => {
    insertSettings(database, { role: 'authority', instance: 'authority-1', high_water: `${now - 1000}` });
    const own = { account_id: 'default', created_at: 5 };
    const keyDigest = sha256(leftSecrets.apiKey);
    insert(database, 'account', { ...own, name: 'default', key_digest: keyDigest });
    const product = { name: 'Press', recurring: 0, secret_digest: sha256(leftSecrets.product) };
    insert(database, 'product', { ...own, product_key: 'press', ...product });
    insert(database, 'collection', { collection_id: 'all', account_id: 'default', name: 'All' });
    insert(database, 'collection_member', { collection_id: 'all', position: 0, product_key: 'press' });
    for (const [key, uses, refundedAt] of [
      ['KEY-1', 5, null],
      ['KEY-2', 0, now - 60_000],
    ] as const) {
      const license = { license_key: key, product_key: 'press', buyer_email: `${key}@Example.com` };
      const enabled = refundedAt === null ? 1 : 0;
      insert(database, 'license', { ...license, uses, enabled, created_at: 5 });
      const purchase = { purchase_id: `purchase-${key}`, license_key: key };
      insert(database, 'purchase', { ...purchase, created_at: 5, refunded_at: refundedAt });
    }
    const terms = {
      code: 'SAVE',
      folded_code: 'save',
      scope: 'collection',
      collection_id: 'all',
      percent_off: 12.5,
    };
    insert(database, 'coupon', { id: 7, account_id: 'default', ...terms });
    const token = { token_id: 'token-1', digest: sha256(leftSecrets.token), scopes: 'admin' };
    insert(database, 'token', { ...own, ...token });
    const act = { actor: 'token:admin.token', act: 'product.add', subject: 'press', detail: 'Press' };
    insert(database, 'audit', { at: 5, ...act });
    const license = { licenseKey: 'KEY-1', productKey: 'press', buyerEmail: 'KEY-1@Example.com' };
    insertAnswer(database, {
      credential: 'product:press',
      key: 'last',
      asked: useOf('KEY-1'),
      value: { ...license, uses: 5, enabled: true, createdAt: 5 },
      at: now - 60_000,
    });
    insertAnswer(database, {
      credential: 'token:token-1',
      key: 'revoked',
      asked: ['DELETE', '/admin/v1/tokens/token-0', null, null],
      value: {
        tokenId: 'token-0',
        scopes: ['verify'],
        productKey: 'press',
        accountId: 'default',
        label: null,
        createdAt: 5,
      },
      at: now - 60_000,
    });
  });
}
