<?php
/**
 * The settings screen, with the install check.
 */

if ( ! defined( 'ABSPATH' ) ) {
	exit;
}

final class Queue_Manager_Settings {

	const PAGE  = 'queue-manager';
	const CHECK = 'queue_manager_check';

	public function register() {
		add_action( 'admin_menu', array( $this, 'menu' ) );
		add_action( 'admin_init', array( $this, 'fields' ) );
		add_filter( 'plugin_action_links_' . plugin_basename( QUEUE_MANAGER_FILE ), array( $this, 'link' ) );
	}

	public function menu() {
		add_options_page(
			__( 'Queue Manager', 'queue-manager' ),
			__( 'Queue Manager', 'queue-manager' ),
			'manage_options',
			self::PAGE,
			array( $this, 'page' )
		);
	}

	public function link( $links ) {
		$url = admin_url( 'options-general.php?page=' . self::PAGE );
		array_unshift( $links, '<a href="' . esc_url( $url ) . '">' . esc_html__( 'Settings', 'queue-manager' ) . '</a>' );
		return $links;
	}

	public function fields() {
		register_setting(
			self::PAGE,
			Queue_Manager_Options::NAME,
			array(
				'type'              => 'array',
				'sanitize_callback' => array( $this, 'sanitize' ),
			)
		);
		add_settings_section( 'room', '', '__return_null', self::PAGE );
		$fields = array(
			'base'    => array( __( 'Server address', 'queue-manager' ), __( 'Where your Queue Manager server is, such as https://queue.example.com.', 'queue-manager' ) ),
			'room'    => array( __( 'Room', 'queue-manager' ), __( 'The id of the waiting room. While it is empty, nobody queues.', 'queue-manager' ) ),
			'key'     => array( __( 'Public API key', 'queue-manager' ), __( 'Lets this site vouch for its visitors’ addresses. A key that is stored is not shown; leave this empty to keep it.', 'queue-manager' ) ),
			'fail'    => array( __( 'When the server cannot be asked', 'queue-manager' ), __( 'Closed keeps visitors waiting until it answers again. Open lets everybody in.', 'queue-manager' ) ),
			'timeout' => array( __( 'Time-out in seconds', 'queue-manager' ), __( 'How long a page may wait for the server: 1 to 30.', 'queue-manager' ) ),
			'proxies' => array( __( 'Trusted proxies', 'queue-manager' ), __( 'Addresses or networks (CIDR) of the proxies before this site. Only from these is X-Forwarded-For believed.', 'queue-manager' ) ),
			'editors' => array( __( 'Editors', 'queue-manager' ), __( 'Signed-in users who can edit posts do not queue.', 'queue-manager' ) ),
		);
		foreach ( $fields as $name => $texts ) {
			add_settings_field(
				$name,
				$texts[0],
				array( $this, 'field' ),
				self::PAGE,
				'room',
				array(
					'name'      => $name,
					'help'      => $texts[1],
					'label_for' => 'queue-manager-' . $name,
				)
			);
		}
	}

	/**
	 * What is stored of what was typed. A value that is none keeps the one that was stored, and says so.
	 */
	public function sanitize( $input ) {
		$stored = Queue_Manager_Options::all();
		$input  = is_array( $input ) ? $input : array();
		$kept   = $stored;
		foreach ( Queue_Manager_Options::defaults() as $name => $default ) {
			$typed = isset( $input[ $name ] ) && is_scalar( $input[ $name ] ) ? trim( (string) $input[ $name ] ) : '';
			if ( 'editors' === $name ) {
				$kept[ $name ] = '' !== $typed;
				continue;
			}
			if ( 'key' === $name && '' === $typed ) {
				continue;
			}
			$value = Queue_Manager_Options::read( $name, $typed );
			if ( null === $value ) {
				add_settings_error(
					Queue_Manager_Options::NAME,
					'queue-manager-' . $name,
					/* translators: %s: the name of a setting. */
					sprintf( __( 'The value of “%s” was not understood, so the former one was kept.', 'queue-manager' ), $name )
				);
				continue;
			}
			$kept[ $name ] = $value;
		}
		return $kept;
	}

	public function field( $args ) {
		$name  = $args['name'];
		$value = Queue_Manager_Options::all()[ $name ];
		$id    = 'queue-manager-' . $name;
		$input = Queue_Manager_Options::NAME . '[' . $name . ']';
		switch ( $name ) {
			case 'fail':
				printf( '<select id="%s" name="%s">', esc_attr( $id ), esc_attr( $input ) );
				foreach ( array(
					'closed' => __( 'Closed', 'queue-manager' ),
					'open'   => __( 'Open', 'queue-manager' ),
				) as $policy => $label ) {
					printf( '<option value="%s"%s>%s</option>', esc_attr( $policy ), selected( $value, $policy, false ), esc_html( $label ) );
				}
				echo '</select>';
				break;
			case 'editors':
				printf( '<input type="checkbox" id="%s" name="%s" value="1"%s>', esc_attr( $id ), esc_attr( $input ), checked( $value, true, false ) );
				break;
			case 'key':
				printf(
					'<input type="password" autocomplete="off" class="regular-text" id="%s" name="%s" value="" placeholder="%s">',
					esc_attr( $id ),
					esc_attr( $input ),
					esc_attr( '' === $value ? '' : __( 'A key is stored', 'queue-manager' ) )
				);
				break;
			default:
				printf( '<input type="text" class="regular-text" id="%s" name="%s" value="%s">', esc_attr( $id ), esc_attr( $input ), esc_attr( $value ) );
		}
		printf( '<p class="description">%s</p>', esc_html( $args['help'] ) );
	}

	public function page() {
		if ( ! current_user_can( 'manage_options' ) ) {
			wp_die( esc_html__( 'You are not allowed to see this page.', 'queue-manager' ), 403 );
		}
		echo '<div class="wrap"><h1>' . esc_html__( 'Queue Manager', 'queue-manager' ) . '</h1>';
		echo '<form method="post" action="options.php">';
		settings_fields( self::PAGE );
		do_settings_sections( self::PAGE );
		submit_button();
		echo '</form>';
		echo '<h2>' . esc_html__( 'Install check', 'queue-manager' ) . '</h2>';
		echo '<form method="post" action="">';
		wp_nonce_field( self::CHECK );
		submit_button( __( 'Run the install check', 'queue-manager' ), 'secondary', self::CHECK );
		echo '</form>';
		if ( isset( $_POST[ self::CHECK ] ) ) {
			check_admin_referer( self::CHECK );
			$this->report();
		}
		echo '</div>';
	}

	/**
	 * Asks the server (GET /api/v1/verify) and shows what it found.
	 */
	private function report() {
		$report = $this->verify();
		if ( is_wp_error( $report ) ) {
			printf( '<div class="notice notice-error inline"><p>%s</p></div>', esc_html( $report->get_error_message() ) );
			return;
		}
		$verdict = $report['ok'] ? __( 'The connector is set up.', 'queue-manager' ) : __( 'Not ready yet. Mend what failed, then run the check again.', 'queue-manager' );
		printf( '<div class="notice notice-%s inline"><p>%s</p></div>', $report['ok'] ? 'success' : 'error', esc_html( $verdict ) );
		echo '<table class="widefat striped"><tbody>';
		foreach ( $report['checks'] as $check ) {
			$text = array();
			foreach ( array( 'status', 'title', 'detail', 'fix' ) as $member ) {
				$text[ $member ] = isset( $check[ $member ] ) && is_string( $check[ $member ] ) ? $check[ $member ] : '';
			}
			printf(
				'<tr><td>%s</td><td><strong>%s</strong><br>%s<br>%s</td></tr>',
				esc_html( $text['status'] ),
				esc_html( $text['title'] ),
				esc_html( $text['detail'] ),
				esc_html( $text['fix'] )
			);
		}
		echo '</tbody></table>';
	}

	/**
	 * The server's report, as an array with ok and checks, or a WP_Error.
	 */
	private function verify() {
		$options = Queue_Manager_Options::all();
		if ( '' === $options['base'] || '' === $options['room'] ) {
			return new WP_Error( 'queue_manager_unset', __( 'Save a server address and a room first.', 'queue-manager' ) );
		}
		$query = array(
			'roomId'    => $options['room'],
			'url'       => home_url( '/' ),
			'connector' => 'wordpress',
			'version'   => Queue_Manager_Options::version(),
		);
		$args  = array(
			'timeout'             => 10,
			'redirection'         => 0,
			'limit_response_size' => 262144,
			'headers'             => array( 'Accept' => 'application/json' ),
		);
		if ( '' !== $options['key'] ) {
			$args['headers']['Authorization'] = 'Bearer ' . $options['key'];
		}
		$response = wp_remote_get( $options['base'] . '/api/v1/verify?' . http_build_query( $query, '', '&', PHP_QUERY_RFC3986 ), $args );
		if ( is_wp_error( $response ) ) {
			return $response;
		}
		$report = json_decode( wp_remote_retrieve_body( $response ), true );
		if ( ! is_array( $report ) || ! isset( $report['ok'], $report['checks'] ) || ! is_array( $report['checks'] ) ) {
			$why = is_array( $report ) && isset( $report['error'] ) && is_string( $report['error'] ) ? $report['error'] : '';
			/* translators: 1: an HTTP status, 2: what the server said. */
			return new WP_Error( 'queue_manager_no_report', sprintf( __( 'The server answered %1$d and no report. %2$s', 'queue-manager' ), wp_remote_retrieve_response_code( $response ), $why ) );
		}
		return $report;
	}
}
