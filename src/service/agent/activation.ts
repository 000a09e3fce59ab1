import { maxAttempts, type ActivationAttempt } from '../../domain/agent/activated-key.ts';
import { done, type Result } from '../../domain/problem/problem.ts';
import { dayMs } from '../../domain/time.ts';
import type { Context } from '../ports.ts';
import type { Transaction } from '../tables.ts';

const keptMs = 30 * dayMs;

type Named = Pick<ActivationAttempt, 'licenseKey' | 'name'>;

/** Records an activation before it is sent. It takes the place of an earlier one of the same license key and name. */
export function beginActivation(
  { activationAttempts }: Transaction,
  { licenseKey, name }: Named,
  { now, random }: Context,
): Result<ActivationAttempt> {
  const attempt = { id: random.uuid(now), licenseKey, name, sentAt: now, activationId: null };
  activationAttempts.put(attempt);
  activationAttempts.keepLatest(maxAttempts);
  return done(attempt);
}

/** Records what became of an activation. `activationId`: it was made, but its caller had left; null: nothing is open. */
export function endActivationAttempt(
  { activationAttempts }: Transaction,
  { licenseKey, name, activationId }: Named & Pick<ActivationAttempt, 'activationId'>,
): Result<null> {
  const attempt = activationAttempts.get(licenseKey, name);
  if (activationId === null) activationAttempts.remove(licenseKey, name);
  else if (attempt !== null) activationAttempts.put({ ...attempt, activationId });
  return done(null);
}

/** Removes old attempts. Returns how many. */
export function pruneActivations(
  { activationAttempts }: Transaction,
  { removalTime, limit }: { removalTime: number; limit: number },
): Result<{ removed: number }> {
  return done({ removed: activationAttempts.prune(removalTime - keptMs, limit) });
}
