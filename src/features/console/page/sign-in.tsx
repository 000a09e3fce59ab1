import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { SessionObject, SignInObject } from '../wire/console.ts';
import { type ApiError, asApiError, send } from './api.ts';
import { Command, commandWith } from './parts/command.tsx';
import { Notice } from './parts/notice.tsx';
import { askTabs, beginSession, type Session } from './session.ts';

const askEveryMs = 1_000;
/** How long another tab may take to give its session. */
const tabAnswersWithinMs = 200;

/** Shows a code until the command `latchkey console` has confirmed the code. `ended`: the session before. */
export function SignIn({ ended }: { ended: Session | null }) {
  const { signIn, error } = useSignIn();
  const content = (
    <>
      <h1>Latchkey</h1>
      {ended !== null && <Notice tone="warn">{reasonOf(ended)}</Notice>}
      {signIn !== null && (
        <>
          <p>The command asks whether this code is yours:</p>
          <p class="code" aria-live="polite">
            {signIn.code}
          </p>
          <p>No command asks? Run this command on the machine of the daemon:</p>
          <Command line={commandWith(signIn.options, `latchkey console ${signIn.code}`)} />
          <p class="quiet">With --admin the console can also change things.</p>
        </>
      )}
      {error !== null && (
        <Notice tone="fail">
          {error.status === 0 ? 'The daemon does not answer. The page tries again.' : error.message}
        </Notice>
      )}
    </>
  );
  return ended === null ? <main class="sign-in">{content}</main> : <Over>{content}</Over>;
}

function reasonOf({ expires_at: end }: Session): string {
  return Date.parse(end) <= Date.now()
    ? 'A session ends after 12 hours. Sign in again: the page goes on where it was.'
    : 'The daemon was restarted, and its sessions ended. Sign in again: the page goes on where it was.';
}

/** A dialog over the page. It hides the page, and stays until a person has signed in. */
function Over({ children }: { children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    // The focus goes back to where it was.
    return () => shown?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      class="sign-in"
      aria-label="Sign in again"
      onCancel={(event) => event.preventDefault()}
    >
      {children}
    </dialog>
  );
}

function useSignIn(): { signIn: SignInObject | null; error: ApiError | null } {
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
        if (session !== null) beginSession(session);
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
    askTabs();
    timer = window.setTimeout(() => void step(), tabAnswersWithinMs);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, []);
  return { signIn, error };
}
