import type { FeatureUseCases } from '../../../service/audit.ts';
import { requestRecovery } from './recovery.ts';
import { freeBuyersSeat } from './seat.ts';

export const useCases = { freeBuyersSeat, requestRecovery };

type BuyersUseCases = typeof useCases;

declare module '../../../service/writer.ts' {
  interface UseCases extends BuyersUseCases {}
}

export const audited: FeatureUseCases['audited'] = {
  freeBuyersSeat: ({ activationId, productKey }) => ({
    act: 'activation.end',
    subject: activationId,
    detail: `product ${productKey}`,
  }),
};
