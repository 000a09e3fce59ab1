import type { FeatureTables } from '../../../store/feature-tables.ts';
import { chainReads, chainTable } from './chain.ts';
import * as postgres from './postgres.ts';
import * as sqlite from './sqlite.ts';

export const tables: FeatureTables = {
  // Each engine has its own history of changes.
  byEngine: {
    sqlite: {
      reads(sql) {
        const positions = sqlite.positionsOf(sql);
        return { sync: sqlite.syncReads(sql, positions), chain: chainReads(sql, positions) };
      },
      tables(sql) {
        const positions = sqlite.positionsOf(sql);
        return { sync: sqlite.syncTable(sql, positions), chain: chainTable(sql, positions) };
      },
    },
    postgres: {
      reads: (sql) => ({ sync: postgres.syncReads(sql) }),
      tables: (sql) => ({ sync: postgres.syncTable(sql) }),
    },
  },
};
