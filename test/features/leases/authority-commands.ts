import { createHash } from 'node:crypto';
import type { CommandOf } from '../../../src/service/writer.ts';
import { at } from '../../support/builders/store-builders.ts';
import { buildRequest } from './support/activation-builders.ts';

type OfIssuer = 'answerLeaseRequest' | 'endActivation' | 'blockActivation' | 'recordExpiringLeases';

/** A command for each use case of this feature (support/app/authority-commands.ts). */
export const commands: { [Name in OfIssuer]: CommandOf<Name> } = {
  answerLeaseRequest: {
    signedRequest: {
      request: buildRequest({ licenseKey: 'KEY' }),
      device: 'device',
      digest: createHash('sha256').update('request').digest('hex'),
    },
    keyNotAfter: at + 400 * 86_400_000,
    until: null,
    isFile: true,
    accountId: 'default',
  },
  endActivation: { activationId: 'of answerLeaseRequest', accountId: 'default' },
  blockActivation: { activationId: 'of answerLeaseRequest', accountId: null },
  recordExpiringLeases: {},
};
