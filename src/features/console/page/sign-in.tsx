import { useEffect, useState } from 'preact/hooks';
import type { SessionObject, SignInObject } from '../wire/console.ts';
import { type ApiError, asApiError, send } from './api.ts';
import { Command } from './parts/command.tsx';
import { Notice } from './parts/notice.tsx';
import { saveSession } from './session.ts';

const askEveryMs = 1_000;

/** Shows a code until the command `latchkey console` has confirmed the code. */
export function SignIn() {
  const [signIn, setSignIn] = useState<SignInObject | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  useEffect(() => {
    let timer: number | undefined;
    let current: SignInObject | null = null;
    let isOver = false;
    const ask = async (): Promise<void> => {
      try {
        current ??= await send<SignInObject>('POST', '/console/v1/sign-ins', {});
        if (isOver) return;
        setSignIn(current);
        setError(null);
        const { secret } = current;
        const { session } = await send<SessionObject>('POST', '/console/v1/sessions', { secret });
        // This part of the page goes away then.
        if (session !== null) saveSession({ token: session.token, admin: session.admin });
      } catch (caught) {
        const failure = asApiError(caught);
        // The code has expired, was refused, or belongs to a daemon that has ended: the next step asks for another.
        if (failure.status === 404) current = null;
        else if (!isOver) setError(failure);
      }
    };
    const step = async (): Promise<void> => {
      // A forgotten tab must not keep another page from a code.
      if (current !== null || document.visibilityState === 'visible') await ask();
      if (!isOver) timer = window.setTimeout(() => void step(), askEveryMs);
    };
    void step();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, []);
  return (
    <main class="sign-in">
      <h1>Latchkey</h1>
      {signIn !== null && (
        <>
          <p>The command asks whether this code is yours:</p>
          <p class="code" aria-live="polite">
            {signIn.code}
          </p>
          <p>No command asks? Run this command on the machine of the daemon:</p>
          <Command line={`latchkey console ${signIn.code}`} />
          <p class="quiet">With --admin the console can also change things.</p>
        </>
      )}
      {error !== null && (
        <Notice tone="fail">
          {error.status === 0 ? 'The daemon does not answer. The page tries again.' : error.message}
        </Notice>
      )}
    </main>
  );
}
