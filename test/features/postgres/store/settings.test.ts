import { expect, test } from 'vitest';
import { Database } from '../../../../src/features/postgres/store/database.ts';
import { hasPostgres, startPostgres } from '../support/postgres.ts';

test.skipIf(!hasPostgres)('what a role is set to elsewhere changes nothing that a node reads', async () => {
  await using server = await startPostgres();
  await using owner = new Database(server.settings());
  for (const setting of [
    'extra_float_digits = 0',
    `idle_session_timeout = '1h'`,
    `statement_timeout = '1s'`,
  ]) {
    await owner.query(`ALTER ROLE owner SET ${setting}`);
  }
  await using node = new Database(server.settings());
  expect(
    await node.query(`SELECT '0.30000000000000004'::float8 AS sum, current_setting('statement_timeout') AS patience,
      current_setting('idle_session_timeout') AS idle`),
  ).toEqual([{ sum: 0.1 + 0.2, patience: '5s', idle: '0' }]);
});
