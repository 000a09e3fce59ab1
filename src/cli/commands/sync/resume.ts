import { defineSync } from './sync.ts';

export const command = defineSync(
  'resume',
  'Resume sending, and retry refused credentials',
  'after a pause, or when a refused credential was corrected',
);
