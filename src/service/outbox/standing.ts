import { laneOf, type Operation } from '../../domain/outbox/operation.ts';
import { standingOf, type Obstacle, type Standing } from '../../domain/outbox/standing.ts';
import type { Reader } from '../tables.ts';
import { fencedUntil } from './lane.ts';

/** Tells how an operation of this store stands; `steady` is `Clock.steady`. */
export function readStanding(
  reader: Reader,
  operation: Operation,
  { obstacle, steady }: { obstacle: Obstacle | null; steady: number },
): Standing {
  const { subject, kind } = operation;
  const lane = laneOf[kind];
  const seen = reader.observations.get(subject);
  return standingOf(operation, {
    now: steady,
    fencedUntil: fencedUntil(reader, { subject, lane, asDisable: kind === 'disable' }, steady),
    isHead: reader.operations.head(subject, lane)?.id === operation.id,
    obstacle,
    shown: seen && { uses: seen.license.uses, enabled: seen.license.enabled, at: seen.confirmedAt },
  });
}
