import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { PersistentClock } from '../../../../src/daemon/system/clock.ts';
import type { LicenseTrigger } from '../../../../src/domain/license.ts';
import { isFailure } from '../../../../src/domain/problem/problem.ts';
import { runUseCase } from '../../../../src/service/run.ts';
import type { CommandResult } from '../../../../src/service/writer.ts';
import { Database } from '../../../../src/features/postgres/store/database.ts';
import { migrate } from '../../../../src/features/postgres/store/migrations.ts';
import {
  PostgresWriter,
  type PostgresWriterOptions,
} from '../../../../src/features/postgres/store/writer.ts';
import type { FaultProxy } from '../../../support/network/fault-proxy.ts';
import type { PostgresServer } from './postgres.ts';
import { account, buildLicense, product } from '../../../support/builders/store-builders.ts';

/** How all nodes except the first reach the database, and their statement timeout. */
type Way = { through?: FaultProxy | undefined; statementTimeoutMs?: number | undefined };

/** Several nodes over their own schema, in which `KEY-1` was sold. Tests read through the first node. */
export async function openNodes(
  server: PostgresServer,
  count: number,
  { through, statementTimeoutMs = 5_000 }: Way = {},
): Promise<Database[] & AsyncDisposable> {
  const own = server.settings({ pool: 4, statementTimeoutMs });
  const port = through?.port ?? own.address.port;
  const far = { ...own, address: { ...own.address, host: '127.0.0.1', port } };
  const opened = Array.from({ length: count }, (_, index) => new Database(index === 0 ? own : far));
  const [first] = opened;
  if (first === undefined) throw new Error('there is no node');
  await migrate(first);
  await first.lend(async (connection) => {
    await connection.begin(null, []);
    await connection.transaction.accounts.add(account, 'digest');
    await connection.transaction.products.add(product, 'digest');
    await connection.transaction.licenses.add(buildLicense());
    await connection.commit();
  });
  const dispose = async (): Promise<void> => {
    await Promise.all(opened.map((each) => each[Symbol.asyncDispose]()));
  };
  return Object.assign(opened, { [Symbol.asyncDispose]: dispose });
}

/** Another node of the authority. */
export function writerOn(database: Database, changes: Partial<PostgresWriterOptions> = {}): PostgresWriter {
  const clock = new PersistentClock(null);
  return new PostgresWriter(database, {
    run: runUseCase,
    isFailure,
    context: (databaseNow) => ({
      now: databaseNow ?? clock.now(),
      monotonic: clock.monotonic(),
      random: { bytes: randomBytes, uuid: () => randomUUID(), fraction: () => Math.random() },
      digest: (secret) => createHash('sha256').update(secret).digest('hex'),
      recordsHistory: true,
    }),
    clock,
    random: { fraction: () => Math.random() },
    onCredentialsChanged: () => undefined,
    onRepeat: () => undefined,
    onTried: () => undefined,
    timer: () => performance.now(),
    ...changes,
  });
}

type Use = {
  under?: string | null;
  of?: string;
  fingerprint?: string;
  trigger?: Exclude<LicenseTrigger, 'refund'>;
};

/** A use or another change of a license at a node; `under` is an optional idempotency key. */
export function use(
  writer: PostgresWriter,
  { under = null, of = 'KEY-1', fingerprint = 'f', trigger = 'usage' }: Use = {},
): Promise<CommandResult<'changeLicense'>> {
  const idempotency = under === null ? null : { credential: 'account:default', key: under, fingerprint };
  const tenant = { accountId: account.accountId, productKey: null };
  return writer.write('changeLicense', { tenant, licenseKey: of, trigger }, { idempotency });
}

export async function usesIn(database: Database, licenseKey = 'KEY-1'): Promise<number | undefined> {
  return (await database.reader.licenses.get(licenseKey))?.uses;
}
