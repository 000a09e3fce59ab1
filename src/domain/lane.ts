import type { Observation } from './observation.ts';
import type { Operation } from './operation.ts';

/** What the head of a lane needs next. */
export type Step =
  /** Nothing, or what is under way. */
  | { step: 'none' }
  /** Ask the upstream first: to settle doubt, for a base to count from, or because the attempt needs it. */
  | { step: 'read' }
  | { step: 'send'; operation: Operation; baseUses: number | null };

/** A lane as the writer sees it at one instant. */
export type LaneView = {
  /** The first that is unfinished, leaving out those that a person must decide. Doubt is always at the front. */
  head: Operation | null;
  observation: Observation | null;
  /** The current start of this process. */
  boot: number;
  /** The lane has been read for this very attempt. */
  justRead: boolean;
};

/**
 * The next step of a license key's lane (sync design, sections 3 and 4). When its head is due is for
 * the store's `next_at` to say; this decides only what is done then.
 */
export function nextStep({ head, observation, boot, justRead }: LaneView): Step {
  if (head === null || head.progress.state === 'in_flight') return { step: 'none' };
  if (head.progress.state === 'uncertain') return { step: 'read' };
  const hasBase = observation !== null && observation.boot === boot;
  switch (head.kind) {
    case 'usage':
      return hasBase ? send(head, observation.license.uses) : { step: 'read' };
    case 'decrease':
      // Never sent at 0: only a read made for this attempt may decide that there is nothing to take back.
      return hasBase && observation.license.uses > 0
        ? send(head, observation.license.uses)
        : { step: 'read' };
    case 'disable':
      return send(head, null);
    case 'enable':
      return justRead ? send(head, null) : { step: 'read' };
    case 'create_coupon':
    case 'redeem':
    case 'void':
      return send(head, null);
    default:
      return head.kind satisfies never;
  }
}

function send(operation: Operation, baseUses: number | null): Step {
  return { step: 'send', operation, baseUses };
}
