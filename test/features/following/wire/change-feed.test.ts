import { expect, test } from 'vitest';
import { readChanges } from '../../../../src/features/following/upstream/feed-wire.ts';
import { serializeChanges } from '../../../../src/features/following/wire/change-feed.ts';
import { buildLicense } from '../../../support/builders/store-builders.ts';

test('a follower that does not know terms gets a license that has ended as not enabled, and others learn that it is not disabled', () => {
  const end = Date.UTC(2030, 0, 1);
  const license = buildLicense({ expiresAt: end, graceUntil: null, usesLimit: null, terms: null });
  const toldAt = (confirmedAt: number) =>
    serializeChanges({
      epoch: 'e',
      cursor: 'c',
      confirmedAt,
      changes: [{ license, revision: 1 }],
      absent: [],
      appeared: [],
      hasMore: false,
      isReset: false,
      isPutBack: false,
    });
  for (const [at, status] of [
    [end, { enabled: true, status: 'active' }],
    [end + 1000, { enabled: false, status: 'expired' }],
  ] as const) {
    const data = toldAt(at);
    expect(data.changes).toMatchObject([{ license: status }]);
    expect(readChanges({ data })).toMatchObject({ value: { licenses: [{ license }] } });
  }
});
