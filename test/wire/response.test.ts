import { expect, it } from 'vitest';
import { problemObject, serializeProblem } from '../../src/wire/response.ts';
import { at } from '../support/builders/store-builders.ts';

it('a refused seat lists the devices that have the seats, and when each seat is free', () => {
  const holder = { activationId: 'id-1', deviceName: null, lastSeenAt: at, freesAt: at + 86_400_000 };
  const problem = { code: 'no_seat_left', detail: 'No seat is free.', holders: [holder] } as const;
  const written = serializeProblem(problem, 'r-1');
  expect(written).toMatchObject({
    holders: [
      {
        activation_id: 'id-1',
        device_name: null,
        last_seen: '2026-01-01T00:00:00+00:00',
        frees_at: '2026-01-02T00:00:00+00:00',
      },
    ],
  });
  expect(problemObject.parse(written)).toEqual(written);
});

it('a refused move says when the seat is free', () => {
  const problem = { code: 'no_move_left', detail: 'No move is left.', freesAt: at } as const;
  const written = serializeProblem(problem, 'r-1');
  expect(written).toMatchObject({ frees_at: '2026-01-01T00:00:00+00:00' });
  expect(problemObject.parse(written)).toEqual(written);
});

it('a request of a device that is out of sequence gets signed documents, and no number without a signature', () => {
  const known = { last: 3, challenge: 'c', uses: { recorded: 2, returned: 1 }, isRestored: true };
  const signed = { sequence: 'a.b.c', keys: 'd.e.f' };
  const problem = { code: 'out_of_sequence', detail: 'It does not follow.', known, signed } as const;
  const written = serializeProblem(problem, 'r-1');
  expect(written).toMatchObject(signed);
  for (const member of ['last', 'challenge', 'uses', 'known']) expect(written).not.toHaveProperty(member);
  expect(problemObject.parse(written)).toEqual(written);
});
