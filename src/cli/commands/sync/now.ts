import { defineSync } from './sync.ts';

export const command = defineSync(
  'now',
  'Send waiting changes at once, ignoring backoff and breaker',
  'after the store was repaired',
);
