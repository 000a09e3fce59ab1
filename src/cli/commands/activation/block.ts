import { defineActivationChange } from './activation.ts';

export const command = defineActivationChange('block', {
  describe: 'Free the seat of a device, and give it no lease of the license again',
  meaning: 'for example of a device that shares its leases',
  epilogue:
    'It blocks the key of the device. A device that makes another key can take a seat: disable the license to prevent that.',
});
