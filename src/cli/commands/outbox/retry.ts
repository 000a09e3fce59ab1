import { defineDecision } from './operation.ts';

export const command = defineDecision(
  'retry',
  'Send a change again that is dead, conflicted or uncertain',
  'when the cause of the refusal is fixed, or it was not applied',
);
