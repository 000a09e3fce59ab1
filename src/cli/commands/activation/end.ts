import { defineActivationChange } from './activation.ts';

export const command = defineActivationChange('end', {
  describe: 'Free the seat of a device, which may take a seat again',
  meaning: 'for example of a lost laptop',
  epilogue:
    'The seat is free at once three times in 30 days for each license, and after that when the last lease of the device ends.',
});
