import { defineDecision } from './operation.ts';

export const command = defineDecision(
  'drop',
  'Give up a change: it is not sent any more',
  'when it should no longer be applied',
);
