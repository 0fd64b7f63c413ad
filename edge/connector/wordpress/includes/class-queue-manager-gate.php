<?php
/**
 * Stands at the site's front door: asks about each request of the front end and does what was decided.
 */

if ( ! defined( 'ABSPATH' ) ) {
	exit;
}

final class Queue_Manager_Gate {

	/**
	 * On parse_request: WordPress knows by then that this is the front end, and has asked its database for nothing yet. The REST API,
	 * which answers on the same hook before (at 10), the dashboard, the login page and cron are never held up.
	 */
	public function register() {
		add_action( 'parse_request', array( $this, 'guard' ), 20 );
	}

	public function guard( $wp ) {
		$options = Queue_Manager_Options::all();
		if ( '' === $options['room'] || '' === $options['base'] || is_admin() || wp_doing_cron() || wp_doing_ajax() ) {
			return;
		}
		if ( isset( $wp->query_vars['robots'] ) || isset( $wp->query_vars['favicon'] ) ) {
			return;
		}
		if ( $options['editors'] && current_user_can( 'edit_posts' ) ) {
			return;
		}
		$config = array(
			'room'        => $options['room'],
			'base'        => $options['base'],
			'key'         => $options['key'],
			'fail'        => $options['fail'],
			'timeout'     => (float) $options['timeout'],
			'closed_page' => (string) file_get_contents( dirname( QUEUE_MANAGER_FILE ) . '/closed.html' ),
		);
		$visit  = Queue_Manager_Visit::of( wp_unslash( $_SERVER ), Queue_Manager_Options::proxies() );
		$result = Queue_Manager_Decision::about( $config, $visit, array( $this, 'get' ) );
		if ( 'open' === $result->decision || 'closed' === $result->decision ) {
			error_log( 'Queue Manager: room ' . $config['room'] . ': ' . $result->decision . ': ' . $result->reason );
		}
		foreach ( $result->headers as $line ) {
			header( $line, 0 !== strpos( $line, 'Set-Cookie:' ) ); // a cookie is added to the site's own
		}
		if ( $result->serve ) {
			// A page that a cache keeps would be served next time without a look at the line.
			if ( 'out_of_scope' !== $result->reason && ! defined( 'DONOTCACHEPAGE' ) ) {
				define( 'DONOTCACHEPAGE', true );
			}
			return;
		}
		status_header( $result->status );
		echo $result->body; // phpcs:ignore WordPress.Security.EscapeOutput -- JSON, or a page of this plugin's own
		exit;
	}

	/**
	 * Asks the server: [status, body], or what went wrong. WordPress waits a second at least, whatever it is told.
	 */
	public function get( $url, $headers, $seconds ) {
		$started  = microtime( true );
		$response = wp_remote_get(
			$url,
			array(
				'timeout'             => $seconds,
				'redirection'         => 0,
				'limit_response_size' => 262144,
				'user-agent'          => 'queue-manager-wordpress',
				'headers'             => $headers,
			)
		);
		if ( ! is_wp_error( $response ) ) {
			return array( (int) wp_remote_retrieve_response_code( $response ), wp_remote_retrieve_body( $response ) );
		}
		$late = false !== stripos( $response->get_error_message(), 'timed out' ) || microtime( true ) - $started >= $seconds;
		return $late ? 'timeout' : 'unreachable';
	}
}
