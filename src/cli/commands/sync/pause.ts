import { defineSync } from './sync.ts';

export const command = defineSync(
  'pause',
  'Stop sending, even across restarts',
  'before work on the store; changes wait',
);
