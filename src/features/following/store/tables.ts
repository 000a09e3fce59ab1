import type { FeatureTables } from '../../../store/feature-tables.ts';
import * as postgres from './postgres.ts';
import * as sqlite from './sqlite.ts';

export const tables: FeatureTables = {
  // Each engine has its own history of changes.
  byEngine: {
    sqlite: {
      reads(sql) {
        const positions = sqlite.positionsOf(sql);
        return { followers: sqlite.followerReads(sql, positions), chain: sqlite.chainReads(sql, positions) };
      },
      tables(sql) {
        const positions = sqlite.positionsOf(sql);
        return { followers: sqlite.followerTable(sql, positions), chain: sqlite.chainTable(sql, positions) };
      },
    },
    postgres: {
      reads: (sql) => ({ followers: postgres.followerReads(sql) }),
      tables: (sql) => ({ followers: postgres.followerTable(sql) }),
    },
  },
};
