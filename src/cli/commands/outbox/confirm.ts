import { defineDecision } from './operation.ts';

export const command = defineDecision(
  'confirm',
  'Record that a change was applied at the upstream',
  'when the store shows that it was applied',
);
